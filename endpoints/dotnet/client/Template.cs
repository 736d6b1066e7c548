using System;
using System.IO;
using System.Linq;
using System.Net;
using System.Net.Http;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>Makes the spec's request, again and again: HttpClient takes each message once.</summary>
    sealed class Template
    {
        // Fields that HttpClient writes or leaves out by itself.
        static readonly string[] OfLibrary =
        {
            "host", "content-length", "transfer-encoding", "connection", "proxy-connection", "keep-alive", "upgrade", "te",
            "trailer", "expect",
        };

        public readonly Version Version;
        readonly ClientSpec spec;

        public Template(ClientSpec spec)
        {
            this.spec = spec;
            Version = spec.IsHttp3 ? new Version(3, 0) : spec.IsHttp2 ? HttpVersion.Version20 : HttpVersion.Version11;
            var wanted = spec.Request.Path;
            var path = wanted.StartsWith("/") ? At(spec.Address).PathAndQuery : "none";
            if (path != wanted)
            {
                throw new Unsupported($"request: `path` = `{wanted}` would be sent as `{path}`");
            }
            foreach (var (name, value) in spec.Request.Headers)
            {
                if (OfLibrary.Contains(name.ToLowerInvariant()))
                {
                    throw new Unsupported($"request: `headers`: HttpClient writes `{name}` itself");
                }
                using var trial = new HttpRequestMessage { Content = spec.Request.BodySize > 0 ? new Body(0) : null };
                if (!Add(trial, name, value))
                {
                    throw new Unsupported($"request: `headers`: HttpClient does not send `{name}` with this request");
                }
            }
        }

        /// <summary>Where the request goes at an address of the server.</summary>
        public Uri At(IPAddress address) =>
            new Uri($"{(spec.IsSecure ? "https" : "http")}://{new IPEndPoint(address, spec.Port)}{spec.Request.Path}");

        public HttpRequestMessage Make(HttpMethod method, Uri server)
        {
            var message = new HttpRequestMessage(method, server) { Version = Version };
#if NET8_0_OR_GREATER
            message.VersionPolicy = HttpVersionPolicy.RequestVersionExact;
#endif
            if (spec.Request.BodySize > 0)
            {
                message.Content = new Body(spec.Request.BodySize);
            }
            // It is the name in TLS and `:authority` too, so that the address can be in the URI.
            message.Headers.Host = spec.ServerName;
            foreach (var (name, value) in spec.Request.Headers)
            {
                Add(message, name, value);
            }
            return message;
        }

        static bool Add(HttpRequestMessage message, string name, string value) =>
            message.Headers.TryAddWithoutValidation(name, value)
            || message.Content != null && message.Content.Headers.TryAddWithoutValidation(name, value);

        /// <summary>A generated body.</summary>
        sealed class Body : HttpContent
        {
            readonly long size;

            public Body(long size) => this.size = size;

            protected override Task SerializeToStreamAsync(Stream stream, TransportContext context) =>
                Pattern.Write(stream, size);

            protected override bool TryComputeLength(out long length)
            {
                length = size;
                return true;
            }
        }
    }
}
