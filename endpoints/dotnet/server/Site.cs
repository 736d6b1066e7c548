using System;
using System.Collections.Generic;
using System.Globalization;
using System.IO;
using System.Text;
using System.Threading;
using System.Threading.Tasks;
using Microsoft.AspNetCore.Http;
using Wirelab.Contract;

namespace Wirelab.Server
{
    /// <summary>Answers the requests of every protocol alike.</summary>
    sealed class Site
    {
        const long LargestBody = 1L << 40, LongestDelay = 3_600_000_000;
        const int Chunk = 64 * 1024;

        /// <summary>
        /// Whether bodies of every size can come back. Before .NET 8 Kestrel answers 411 to a POST without content-length in
        /// HTTP/1.1, which has an empty body.
        /// </summary>
        public static bool CanEcho =>
#if NET8_0_OR_GREATER
            true;
#else
            false;
#endif

        // The contract's table.
        static readonly Dictionary<string, string> ContentTypes = new Dictionary<string, string>
        {
            [".html"] = "text/html", [".css"] = "text/css", [".js"] = "text/javascript", [".jpg"] = "image/jpeg",
            [".woff2"] = "font/woff2",
        };

        readonly HashSet<string> features;
        readonly Dictionary<string, byte[]> documents;
        long answered;

        public Site(ServerSpec spec) => (features, documents) = (spec.Features, Documents.Load(spec.DocumentRoot));

        /// <summary>The number of answered requests so far; a request counts when its response is chosen.</summary>
        public long Answered => Interlocked.Read(ref answered);

        public Task Answer(HttpContext context)
        {
            var arrival = Clock.Now();
            Interlocked.Increment(ref answered);
            HttpRequest request = context.Request;
            HttpResponse response = context.Response;
            var path = request.Path.Value ?? "/";
            if (path == "/echo" && features.Contains("echo"))
            {
                return request.Method == "POST" ? Echo(request, response) : Status(response, 405);
            }
            if (request.Method != "GET")
            {
                return Status(response, 405);
            }
            if (path == "/redirect" && features.Contains("redirect"))
            {
                response.Headers["location"] = path;
                return Status(response, 302);
            }
            var slash = path.IndexOf('/', 1);
            var kind = slash < 0 ? "" : path.Substring(1, slash - 1);
            if ((kind == "bytes" || kind == "delay" || kind == "heron") && features.Contains(kind))
            {
                return Generate(kind, path.Substring(slash + 1), response, arrival);
            }
            return documents.TryGetValue(path, out var document) ? Document(response, path, document) : Status(response, 404);
        }

        static Task Generate(string kind, string argument, HttpResponse response, long arrival)
        {
            if (kind == "heron")
            {
                var root = Heron.Answer(argument);
                return root == null ? Status(response, 400) : Body(response, Encoding.ASCII.GetBytes(root));
            }
            var isNumber = long.TryParse(argument, NumberStyles.None, CultureInfo.InvariantCulture, out var number);
            if (!isNumber || number > (kind == "bytes" ? LargestBody : LongestDelay))
            {
                return Status(response, 400);
            }
            if (kind == "delay")
            {
                return Delay(response, arrival + number * 1000);
            }
            response.ContentLength = number;
            return Pattern.Write(response.Body, number);
        }

        static async Task Delay(HttpResponse response, long until)
        {
            await Alarm.Until(until);
            response.ContentLength = 0;
        }

        // The body goes back as it comes.
        static Task Echo(HttpRequest request, HttpResponse response)
        {
            response.ContentLength = request.ContentLength;
            return request.Body.CopyToAsync(response.Body, Chunk);
        }

        Task Document(HttpResponse response, string path, byte[] document)
        {
            if (features.Contains("pages") && ContentTypes.TryGetValue(Path.GetExtension(path), out var type))
            {
                response.ContentType = type;
            }
            return Body(response, document);
        }

        static Task Body(HttpResponse response, byte[] body)
        {
            response.ContentLength = body.Length;
            return response.Body.WriteAsync(body, 0, body.Length);
        }

        static Task Status(HttpResponse response, int code)
        {
            response.StatusCode = code;
            response.ContentLength = 0;
            return Task.CompletedTask;
        }
    }
}
