using System.Collections.Generic;
using System.Linq;
using System.Net.Security;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>TLS of a client: its trust, and the negotiated values.</summary>
    sealed class Trust
    {
        readonly ClientSpec spec;
        readonly Driver driver;
        // null: the system's.
        readonly X509Certificate2Collection anchors;

        public Trust(ClientSpec spec, Driver driver)
        {
            (this.spec, this.driver) = (spec, driver);
            anchors = spec.TrustAnchor == null ? null : Pem.Certificates(spec.TrustAnchor);
        }

        /// <summary>The options of a connection, which notes when the server's certificate is accepted.</summary>
        public SslClientAuthenticationOptions Options(Connection connection)
        {
            var options = new SslClientAuthenticationOptions
            {
                EnabledSslProtocols = SslProtocols.Tls13,
                RemoteCertificateValidationCallback = (sender, certificate, chain, errors) =>
                    Accept(connection, sender as SslStream, certificate, chain, errors),
            };
#if NET8_0_OR_GREATER
            options.AllowTlsResume = false;
            if (anchors != null)
            {
                options.CertificateChainPolicy = new X509ChainPolicy
                {
                    TrustMode = X509ChainTrustMode.CustomRootTrust, RevocationMode = X509RevocationMode.NoCheck,
                    DisableCertificateDownloads = true,
                };
                options.CertificateChainPolicy.CustomTrustStore.AddRange(anchors);
            }
#endif
            return options;
        }

        bool Accept(Connection connection, SslStream tls, X509Certificate certificate, X509Chain chain, SslPolicyErrors errors)
        {
            if (spec.Verify && !IsTrusted(certificate, chain, errors))
            {
                var why = chain == null ? "" : string.Join(", ", chain.ChainStatus.Select(status => status.Status));
                connection.Refusal = new Failure(Kind.Certificate, $"the certificate is not accepted: {errors} {why}".TrimEnd());
                return false;
            }
#if !NET8_0_OR_GREATER
            // Here, because HttpClient would go on with HTTP/1.1 where the server does not speak HTTP/2.
            if (tls != null && OtherAlpn(tls) is Failure other)
            {
                connection.Refusal = other;
                return false;
            }
#endif
            // A client that offers no ticket has a full handshake. Where TLS is made in QUIC this is the last that is seen of it.
            (connection.Ready, connection.Handshake) = (Clock.Now(), Handshake.Full);
            driver.Add(new Dictionary<string, object> { ["certificate_chain_bytes"] = Size(certificate, chain) });
            return true;
        }

        bool IsTrusted(X509Certificate certificate, X509Chain chain, SslPolicyErrors errors)
        {
#if !NET8_0_OR_GREATER
            // The chain was built with the authorities of the system, and their verdict does not count.
            if (anchors != null && certificate != null)
            {
                errors &= ~SslPolicyErrors.RemoteCertificateChainErrors;
                return errors == SslPolicyErrors.None && EndsAtAnchor(new X509Certificate2(certificate), chain);
            }
#endif
            return errors == SslPolicyErrors.None;
        }

        bool EndsAtAnchor(X509Certificate2 certificate, X509Chain sent)
        {
            using var chain = new X509Chain();
            chain.ChainPolicy.RevocationMode = X509RevocationMode.NoCheck;
            chain.ChainPolicy.VerificationFlags = X509VerificationFlags.AllowUnknownCertificateAuthority;
            chain.ChainPolicy.ExtraStore.AddRange(anchors);
            if (sent != null)
            {
                chain.ChainPolicy.ExtraStore.AddRange(sent.ChainPolicy.ExtraStore);
            }
            if (!chain.Build(certificate))
            {
                return false;
            }
            var last = chain.ChainElements[chain.ChainElements.Count - 1].Certificate.RawData;
            return anchors.Cast<X509Certificate2>().Any(anchor => anchor.RawData.SequenceEqual(last));
        }

        /// <summary>Bytes of all certificates that the server sent.</summary>
        static long Size(X509Certificate certificate, X509Chain chain)
        {
            var leaf = certificate.GetRawCertData();
            var sent = chain == null ? new X509Certificate2Collection() : chain.ChainPolicy.ExtraStore;
            var others = sent.Cast<X509Certificate2>().Select(one => one.RawData).Where(other => !other.SequenceEqual(leaf));
            return leaf.Length + others.Sum(other => (long)other.Length);
        }

        Failure OtherAlpn(SslStream tls)
        {
            var alpn = tls.NegotiatedApplicationProtocol.ToString();
            return alpn == spec.Alpn
                ? null
                : new Failure(Kind.Protocol, $"the server chose the protocol `{alpn}`, not `{spec.Alpn}`");
        }

        /// <summary>Checks the protocol after a complete handshake, and notes the negotiated values.</summary>
        public void Check(SslStream tls)
        {
            if (OtherAlpn(tls) is Failure other)
            {
                throw other;
            }
            driver.Add(new Dictionary<string, object> { ["alpn"] = spec.Alpn, ["cipher"] = tls.NegotiatedCipherSuite.ToString() });
        }
    }
}
