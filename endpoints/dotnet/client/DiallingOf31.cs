#if !NET8_0_OR_GREATER
using System;
using System.Collections.Generic;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Net.Security;
using System.Reflection;
using System.Runtime.CompilerServices;
using System.Threading;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>
    /// Times of connections with .NET Core 3.1, whose HttpClient makes them itself and reports nothing. With TLS it asks for a
    /// certificate of the client as soon as TCP is connected. In clear text it reads the request's method at that time.
    /// </summary>
    sealed class Dialling
    {
        // Http2Connection.ConnectionWindowSize and DefaultInitialWindowSize of the library.
        const int ConnectionWindow = 64 << 20, StreamWindow = 65_535;

        readonly ClientSpec spec;
        readonly Trust trust;
        readonly TimeSpan connectTimeout;
        readonly ConditionalWeakTable<Connection, SslStream> handshakes = new ConditionalWeakTable<Connection, SslStream>();

        public Dialling(ClientSpec spec, Driver driver)
        {
            (this.spec, connectTimeout) = (spec, Clock.Milliseconds(Math.Min(spec.ConnectNs, spec.RequestNs)));
            trust = spec.IsSecure ? new Trust(spec, driver) : null;
            Refuse(spec.Transport);
            AppContext.SetSwitch("System.Net.Http.SocketsHttpHandler.Http2UnencryptedSupport", true);
        }

        /// <summary>Refuses every value that is not the default: nothing can be set.</summary>
        static void Refuse(Transport transport)
        {
            var congestion = TcpOptions.DefaultCongestion();
            void Demand(bool isSo, string setting)
            {
                if (!isSo)
                {
                    throw new Unsupported($"transport: `{setting}`: a client can choose it with .NET 8 or later only");
                }
            }
            Demand(transport.NoDelay, "no_delay");
            Demand((transport.Congestion ?? congestion) == congestion, "congestion");
            Demand((transport.StreamWindow ?? StreamWindow) == StreamWindow, "stream_window");
            Demand((transport.ConnectionWindow ?? ConnectionWindow) == ConnectionWindow, "connection_window");
        }

        public void DescribeWindows(Dictionary<string, object> configured)
        {
            if (spec.IsHttp2)
            {
                (configured["connection_window"], configured["stream_window"]) = (ConnectionWindow, StreamWindow);
            }
        }

        public HttpMessageHandler Handler(Connection connection)
        {
            var handler = new SocketsHttpHandler
            {
                AllowAutoRedirect = false, AutomaticDecompression = DecompressionMethods.None, UseCookies = false, UseProxy = false,
                MaxConnectionsPerServer = 1, ConnectTimeout = connectTimeout,
                PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan, PooledConnectionLifetime = Timeout.InfiniteTimeSpan,
            };
            if (trust != null)
            {
                handler.SslOptions = trust.Options(connection);
                handler.SslOptions.LocalCertificateSelectionCallback = (sender, host, mine, theirs, issuers) =>
                {
                    NoteHandshake(connection, (SslStream)sender);
                    return null;
                };
            }
            return handler;
        }

        void NoteHandshake(Connection connection, SslStream tls)
        {
            if (handshakes.TryGetValue(connection, out var known) && known == tls)
            {
                return;
            }
            connection.Dial();
            connection.Connected = Clock.Now();
            handshakes.Add(connection, tls);
            OfferAlpn(tls, new SslApplicationProtocol(spec.Alpn));
        }

        /// <summary>With HTTP/1.1 it would offer none, with HTTP/2 both.</summary>
        static void OfferAlpn(SslStream tls, SslApplicationProtocol protocol)
        {
            const BindingFlags hidden = BindingFlags.Instance | BindingFlags.NonPublic;
            var field = typeof(SslStream).GetFields(hidden).Single(one => one.FieldType.Name == "SslAuthenticationOptions");
            var options = field.GetValue(tls);
            var protocols = options.GetType().GetFields(hidden).Single(one => one.Name.Contains("<ApplicationProtocols>"));
            protocols.SetValue(options, new List<SslApplicationProtocol> { protocol });
        }

        /// <summary>Checks the negotiated values, which are known with the first response.</summary>
        public void Check(Connection connection)
        {
            if (trust != null && handshakes.TryGetValue(connection, out var tls))
            {
                handshakes.Remove(connection);
                trust.Check(tls);
            }
        }

        public HttpMethod Method(Connection connection, string name) => new Watched(name, connection, trust == null);

        /// <summary>A method that notes when it is looked up, once: when HttpClient begins to write the request.</summary>
        sealed class Watched : HttpMethod
        {
            readonly Connection connection;
            readonly bool connects;
            int written;

            public Watched(string name, Connection connection, bool connects) : base(name) =>
                (this.connection, this.connects) = (connection, connects);

            public override int GetHashCode()
            {
                if (written++ > 0)
                {
                    // A request that is sent again, over another connection, behind the engine's back.
                    throw new Failure(Kind.Reset, "the connection was lost");
                }
                if (connects && connection.Connected == 0)
                {
                    connection.Connected = Clock.Now();
                }
                return base.GetHashCode();
            }
        }
    }
}
#endif
