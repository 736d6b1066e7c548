#if NET8_0_OR_GREATER
using System;
using System.Collections.Generic;
using System.IO;
using System.Net;
using System.Net.Http;
using System.Net.Security;
using System.Net.Sockets;
using System.Threading;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>
    /// The making of connections: TCP and TLS by the callback that HttpClient has for that. So ALPN is offered with HTTP/1.1
    /// too, with which HttpClient would send none. QUIC is HttpClient's own.
    /// </summary>
    sealed class Dialling
    {
        // Http2Connection.ConnectionWindowSize and HttpHandlerDefaults.DefaultInitialHttp2StreamWindowSize of the library.
        const int ConnectionWindow = 64 << 20, DefaultStreamWindow = 65_535;
        const int SmallestStreamWindow = 65_535, LargestStreamWindow = 16 << 20;

        readonly ClientSpec spec;
        readonly Trust trust;
        readonly HttpMethod method;
        readonly TimeSpan connectTimeout;
        readonly Driver driver;

        public Dialling(ClientSpec spec, Driver driver)
        {
            (this.spec, this.driver) = (spec, driver);
            method = new HttpMethod(spec.Request.Method);
            connectTimeout = Clock.Milliseconds(Math.Min(spec.ConnectNs, spec.RequestNs));
            trust = spec.IsSecure ? new Trust(spec, driver) : null;
            TcpOptions.Try(spec.Transport);
            if (spec.Transport.ConnectionWindow is long connection && connection != ConnectionWindow)
            {
                throw new Unsupported($"transport: `connection_window`: HttpClient gives {ConnectionWindow} bytes");
            }
            if (spec.Transport.StreamWindow is long stream)
            {
                if (stream < SmallestStreamWindow || stream > LargestStreamWindow)
                {
                    throw new Unsupported($"transport: `stream_window` = {stream}; HttpClient gives {SmallestStreamWindow} to "
                        + $"{LargestStreamWindow} bytes");
                }
                // Otherwise it would grow.
                AppContext.SetSwitch("System.Net.SocketsHttpHandler.Http2FlowControl.DisableDynamicWindowSizing", true);
            }
        }

        public void DescribeWindows(Dictionary<string, object> configured)
        {
            if (spec.IsHttp2)
            {
                configured["connection_window"] = ConnectionWindow;
                configured["stream_window"] = spec.Transport.StreamWindow ?? DefaultStreamWindow;
            }
        }

        public HttpMethod Method(Connection connection, string name) => method;

        public HttpMessageHandler Handler(Connection connection)
        {
            var handler = new SocketsHttpHandler
            {
                AllowAutoRedirect = false, AutomaticDecompression = DecompressionMethods.None, UseCookies = false, UseProxy = false,
                MaxConnectionsPerServer = 1, ConnectTimeout = connectTimeout, ActivityHeadersPropagator = null,
                PooledConnectionIdleTimeout = Timeout.InfiniteTimeSpan, PooledConnectionLifetime = Timeout.InfiniteTimeSpan,
                InitialHttp2StreamWindowSize = (int)(spec.Transport.StreamWindow ?? DefaultStreamWindow),
                ConnectCallback = (_, cancelled) => Dial(connection, cancelled),
            };
            if (spec.IsHttp3)
            {
                handler.SslOptions = trust.Options(connection);
            }
            return handler;
        }

        async ValueTask<Stream> Dial(Connection connection, CancellationToken cancelled)
        {
            connection.Dial();
            var server = new IPEndPoint(IPAddress.Parse(connection.Server.IdnHost), spec.Port);
            var socket = new Socket(server.AddressFamily, SocketType.Stream, ProtocolType.Tcp);
            try
            {
                socket.NoDelay = spec.Transport.NoDelay;
                TcpOptions.Set((int)socket.Handle, spec.Transport);
                await socket.ConnectAsync(server, cancelled).ConfigureAwait(false);
                connection.Connected = Clock.Now();
                var tcp = new NetworkStream(socket, ownsSocket: true);
                return trust == null ? tcp : await Secure(connection, tcp, cancelled).ConfigureAwait(false);
            }
            catch
            {
                socket.Dispose();
                throw;
            }
        }

        async Task<Stream> Secure(Connection connection, Stream tcp, CancellationToken cancelled)
        {
            var tls = new SslStream(tcp);
            var options = trust.Options(connection);
            options.TargetHost = spec.ServerName;
            options.ApplicationProtocols = new List<SslApplicationProtocol> { new SslApplicationProtocol(spec.Alpn) };
            await tls.AuthenticateAsClientAsync(options, cancelled).ConfigureAwait(false);
            connection.Ready = Clock.Now();
            trust.Check(tls);
            return tls;
        }

        public void Check(Connection connection)
        {
            if (spec.IsHttp3)
            {
                // HttpClient speaks HTTP/3 where this was negotiated, and does not tell more.
                driver.Add(new Dictionary<string, object> { ["alpn"] = spec.Alpn });
            }
        }
    }
}
#endif
