using System;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>The conversation of a client.</summary>
    static class ClientRole
    {
        /// <summary>Whether this machine has what HTTP/3 needs.</summary>
        public static bool HasHttp3 =>
#if NET8_0_OR_GREATER
            System.Net.Quic.QuicConnection.IsSupported;
#else
            false;
#endif

        public static async Task Run(ClientSpec spec)
        {
            var driver = new Driver(spec);
            var recorder = Recorder.For(spec);
            await Rehearsal.Run(spec);
            var commands = new Commands("finish", GiveUp);
            Events.Emit("ready", ("configured", driver.Configured));

            commands.Expect("go");
            var sender = new Sender(spec, driver);
            await sender.Check();
            var links = spec.PerRequest ? null : await Open(sender);
            var lanes = links == null ? null : LanesOf(links, spec.Streams);
            if (spec.WarmUp != null)
            {
                await new Period(sender, lanes, null, spec.WarmUp, Clock.Now()).Run();
            }
            if (spec.PerRequest)
            {
                // The connections of the warm-up are not in the results.
                driver.Renumber();
            }
            // Collects garbage, so that every window begins with live data only.
            GC.Collect();
            Events.Emit("warm");

            var zero = commands.Expect("go");
            var window = await new Period(sender, lanes, recorder, spec.Extent, zero).Run() - zero;
            Events.Emit("end", ("window_ns", window));

            commands.Expect("finish");
            Array.ForEach(links ?? Array.Empty<Link>(), link => link.Close());
            if (sender.First != null)
            {
                Console.Error.WriteLine($"the first failure of the window: {sender.First.Kind.Token()}: {sender.First.Message}");
            }
            recorder.Write(spec.Results, zero);
            var (succeeded, failed) = recorder.Count();
            Events.Emit("done", ("requests", succeeded), ("errors", failed), ("configured", driver.Configured));
        }

        /// <summary>Opens the persistent connections.</summary>
        static async Task<Link[]> Open(Sender sender)
        {
            var links = new Link[sender.Spec.Connections];
            sender.Driver.Renumber();
            for (var i = 0; i < links.Length; i++)
            {
                links[i] = new Link();
                await sender.Open(links[i]);
            }
            return links;
        }

        /// <summary>Successive lanes belong to different connections, so that requests are spread over all.</summary>
        static Lane[] LanesOf(Link[] links, int streams)
        {
            var lanes = new Lane[links.Length * streams];
            for (var i = 0; i < lanes.Length; i++)
            {
                lanes[i] = new Lane(links[i % links.Length]);
            }
            return lanes;
        }

        static void GiveUp() => Events.Fail(new Failure(Kind.Other, "told to stop before the end"));
    }
}
