using System;
using System.Net;
using System.Net.Http;
using System.Threading;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>
    /// Runs the engine before `ready`, against a handler that answers at once instead of a connection, so that it is compiled
    /// when it counts. What HttpClient has below that is compiled by the warm-up alone.
    /// </summary>
    static class Rehearsal
    {
        // A method is worth compiling thoroughly after 30 calls, and that is done when no new one was called for 100 ms.
        const int Requests = 300;
        static readonly TimeSpan Compiling = TimeSpan.FromMilliseconds(150);

        public static async Task Run(ClientSpec spec)
        {
            var sender = new Sender(spec, new Driver(spec, _ => new AtOnce(spec)));
            var lane = new Lane(new Link());
            for (var i = 0; i < Requests; i++)
            {
                await sender.Perform(lane, Clock.Now(), 0, null);
            }
            lane.Link.Close();
            await Task.Delay(Compiling);
        }

        sealed class AtOnce : HttpMessageHandler
        {
            const long LargestBody = 64 * 1024;

            readonly HttpStatusCode status = HttpStatusCode.OK;
            readonly byte[] body = Array.Empty<byte>();

            public AtOnce(ClientSpec spec)
            {
                if (spec.Request.Expect is Expect expect)
                {
                    (status, body) = ((HttpStatusCode)expect.Status, new byte[Math.Min(expect.BodySize, LargestBody)]);
                }
            }

            protected override async Task<HttpResponseMessage> SendAsync(HttpRequestMessage request, CancellationToken cancelled)
            {
                // As from the network: on the pool, later.
                await Task.Yield();
                return new HttpResponseMessage(status) { Version = request.Version, Content = new ByteArrayContent(body) };
            }
        }
    }
}
