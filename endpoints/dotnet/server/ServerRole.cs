using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Builder;
using Microsoft.AspNetCore.Hosting;
using Microsoft.AspNetCore.Hosting.Server;
using Microsoft.AspNetCore.Hosting.Server.Features;
using Microsoft.AspNetCore.Server.Kestrel.Core;
using Microsoft.AspNetCore.Server.Kestrel.Transport.Sockets;
using Microsoft.Extensions.DependencyInjection;
using Microsoft.Extensions.Hosting;
using Microsoft.Extensions.Options;
using Wirelab.Contract;

namespace Wirelab.Server
{
    /// <summary>The conversation of a server, and its host.</summary>
    static class ServerRole
    {
        // The contract gives two seconds in all.
        static readonly TimeSpan Stopping = TimeSpan.FromMilliseconds(300);

        /// <summary>Whether this machine has what HTTP/3 needs.</summary>
        public static bool HasHttp3 =>
#if NET8_0_OR_GREATER
            System.Net.Quic.QuicListener.IsSupported;
#else
            false;
#endif

        public static async Task Run(ServerSpec spec)
        {
            Listener.Check(spec);
            TcpOptions.Try(spec.Transport);
            var site = new Site(spec);
            using var host = MakeHost(spec, site);
            try
            {
                await host.StartAsync();
            }
            catch (IOException error)
            {
                throw new Failure(Kind.Other, $"binding {spec.Address} port {spec.Port}: {error.Message}");
            }
            var address = host.Services.GetRequiredService<IServer>().Features.Get<IServerAddressesFeature>().Addresses.First();
            var port = new Uri(address).Port;
            var stopped = new CancellationTokenSource();
            var commands = new Commands("stop", stopped.Cancel);
            Events.Emit("ready", ("port", port), ("configured", Configured(spec, host, port)));
            Converse(spec, site, commands, stopped.Token);
            var answered = site.Answered;
            await Stop(host);
            Events.Emit("done", ("requests", answered), ("configured", new Dictionary<string, object>()));
        }

        /// <summary>Closes every connection; a busy one at the end of the time limit.</summary>
        static async Task Stop(IHost host)
        {
            using var timeout = new CancellationTokenSource(Stopping);
            try
            {
                await host.StopAsync(timeout.Token);
            }
            catch (OperationCanceledException)
            {
                // It is over.
            }
        }

        static void Converse(ServerSpec spec, Site site, Commands commands, CancellationToken stopped)
        {
            try
            {
                while (true)
                {
                    if (commands.Next(stopped) == "count" && spec.Counts)
                    {
                        Events.Emit("counted", ("requests", site.Answered));
                    }
                }
            }
            catch (OperationCanceledException)
            {
                // It was stopped.
            }
        }

        static IHost MakeHost(ServerSpec spec, Site site) =>
            new HostBuilder()
                .ConfigureWebHost(web =>
                {
                    web.UseKestrel(options => Listener.Configure(options, spec));
                    web.UseSockets(options => options.NoDelay = spec.Transport.NoDelay);
#if NET8_0_OR_GREATER
                    if (spec.IsHttp3)
                    {
                        web.UseQuic();
                    }
#endif
                    web.Configure(app => app.Run(site.Answer));
                })
                .ConfigureServices(services => services.AddSingleton<IHostLifetime, Lifetime>())
                .Build();

        /// <summary>The active settings, read back.</summary>
        static Dictionary<string, object> Configured(ServerSpec spec, IHost host, int port)
        {
            var configured = new Dictionary<string, object>();
            if (!spec.IsHttp3)
            {
                // An accepted connection inherits the congestion control of the socket that listens; TCP_NODELAY is Kestrel's.
                var socket = TcpOptions.Listening(port);
                TcpOptions.Set(socket, spec.Transport);
                configured = TcpOptions.ActiveSettings(socket);
                configured["no_delay"] = host.Services.GetRequiredService<IOptions<SocketTransportOptions>>().Value.NoDelay;
            }
            if (spec.IsHttp2)
            {
                var limits = host.Services.GetRequiredService<IOptions<KestrelServerOptions>>().Value.Limits.Http2;
                configured["stream_window"] = limits.InitialStreamWindowSize;
                configured["connection_window"] = limits.InitialConnectionWindowSize;
            }
            return configured;
        }

        /// <summary>The host lives until `stop`. That of the console would wait for it whenever the process ends.</summary>
        sealed class Lifetime : IHostLifetime
        {
            public Task WaitForStartAsync(CancellationToken cancelled) => Task.CompletedTask;

            public Task StopAsync(CancellationToken cancelled) => Task.CompletedTask;
        }
    }
}
