using System;
using System.Security.Authentication;
using System.Security.Cryptography.X509Certificates;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Https;
using Wirelab.Contract;

namespace Wirelab.Server
{
    /// <summary>Kestrel as the spec wants it. README.md lists the settings and their reasons.</summary>
    static class Listener
    {
        const int Streams = 100_000, SmallestWindow = 65_535;

        // Deadlines are the clients'.
        static readonly TimeSpan ConnectionTimeout = TimeSpan.FromHours(1);

        /// <summary>Refuses what Kestrel cannot do.</summary>
        public static void Check(ServerSpec spec)
        {
            foreach (var window in new[] { spec.Transport.StreamWindow, spec.Transport.ConnectionWindow })
            {
                if (window < SmallestWindow)
                {
                    throw new Unsupported($"transport: a window of {window} bytes; Kestrel gives {SmallestWindow} or more");
                }
            }
            if (spec.Resumption && !CanResume(spec))
            {
                throw new Unsupported("tls: `resumption`: it needs .NET 8 or later, and TCP");
            }
        }

        static bool CanResume(ServerSpec spec) =>
#if NET8_0_OR_GREATER
            !spec.IsHttp3;
#else
            false;
#endif

        public static void Configure(KestrelServerOptions options, ServerSpec spec)
        {
            options.AddServerHeader = false;
            options.Limits.MaxRequestBodySize = null;
            options.Limits.MinRequestBodyDataRate = null;
            options.Limits.MinResponseDataRate = null;
            options.Limits.KeepAliveTimeout = options.Limits.RequestHeadersTimeout = ConnectionTimeout;
            var http2 = options.Limits.Http2;
            http2.MaxStreamsPerConnection = Streams;
            http2.InitialStreamWindowSize = (int)(spec.Transport.StreamWindow ?? http2.InitialStreamWindowSize);
            http2.InitialConnectionWindowSize = (int)(spec.Transport.ConnectionWindow ?? http2.InitialConnectionWindowSize);
            options.Listen(spec.Address, spec.Port, listen =>
            {
                listen.Protocols = Protocols(spec);
                if (spec.IsSecure)
                {
                    var chain = Pem.Certificates(spec.Certificate);
                    listen.UseHttps(https => Secure(https, spec, chain));
                }
            });
        }

        static HttpProtocols Protocols(ServerSpec spec)
        {
#if NET8_0_OR_GREATER
            if (spec.IsHttp3)
            {
                return HttpProtocols.Http3;
            }
#endif
            return spec.IsHttp2 ? HttpProtocols.Http2 : HttpProtocols.Http1;
        }

        static void Secure(HttpsConnectionAdapterOptions https, ServerSpec spec, X509Certificate2Collection chain)
        {
            https.ServerCertificate = Pem.WithKey(chain[0], spec.Key);
            https.SslProtocols = SslProtocols.Tls13;
            https.HandshakeTimeout = ConnectionTimeout;
#if NET8_0_OR_GREATER
            https.ServerCertificateChain = chain;
            if (!spec.IsHttp3)
            {
                https.OnAuthenticate = (_, options) => options.AllowTlsResume = spec.Resumption;
            }
#else
            if (chain.Count > 1)
            {
                throw new Unsupported("tls: `certificate` has intermediate certificates, which need .NET 8 or later");
            }
#endif
        }
    }
}
