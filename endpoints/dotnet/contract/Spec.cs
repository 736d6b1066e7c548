using System;
using System.IO;
using System.Net;
using System.Text.Json;

namespace Wirelab.Contract
{
    /// <summary>The fields of both roles' specs.</summary>
    abstract class Spec
    {
        public const int Version = 1;

        public readonly string Protocol;
        public readonly IPAddress Address;
        public readonly int Port;
        public readonly string ServerName;
        public readonly Transport Transport;

        public bool IsSecure => !Protocol.EndsWith("c");
        public bool IsHttp2 => Protocol.StartsWith("h2");
        public bool IsHttp3 => Protocol == "h3";
        public bool Multiplexes => IsHttp2 || IsHttp3;
        public string Alpn => IsHttp3 ? "h3" : IsHttp2 ? "h2" : "http/1.1";

        protected Spec(Fields fields, string[] protocols)
        {
            fields.Count("contract", Version, Version);
            Protocol = fields.Choose("protocol", protocols);
            Address = ParseAddress(fields.Text("address"));
            Port = (int)fields.Count("port", 0, ushort.MaxValue);
            ServerName = fields.Text("server_name");
            if (fields.Has("tls") != IsSecure)
            {
                throw new Unsupported($"spec: `tls` must be there exactly where the protocol has TLS, and it is {Protocol}");
            }
            Transport = new Transport(fields.Has("transport") ? fields.Inner("transport") : null, this);
        }

        /// <summary>The fields of the spec in a file.</summary>
        public static Fields Read(string path)
        {
            try
            {
                return new Fields(JsonDocument.Parse(File.ReadAllBytes(path)).RootElement, "spec");
            }
            catch (Exception error) when (error is IOException || error is JsonException || error is UnauthorizedAccessException)
            {
                throw new Failure(Kind.Other, $"reading the spec {path}: {error.Message}");
            }
        }

        protected static IPAddress ParseAddress(string text) =>
            IPAddress.TryParse(text, out var address) ? address : throw new Unsupported($"spec: `{text}` is no address");
    }

    /// <summary>Transport settings; null means the library's default.</summary>
    sealed class Transport
    {
        const int LargestWindow = int.MaxValue;

        public readonly string Congestion;
        public readonly bool NoDelay = true;
        public readonly long? StreamWindow, ConnectionWindow;

        public Transport(Fields fields, Spec spec)
        {
            if (fields == null)
            {
                return;
            }
            if (!spec.IsHttp3)
            {
                Congestion = fields.Has("congestion") ? fields.Choose("congestion", "cubic", "bbr", "reno") : null;
                NoDelay = fields.OptionalFlag("no_delay") ?? true;
                if (fields.OptionalFlag("fast_open") == true)
                {
                    throw new Unsupported("transport: `fast_open`: .NET has no TCP Fast Open on Linux");
                }
            }
            if (spec.IsHttp2)
            {
                StreamWindow = fields.OptionalCount("stream_window", 1, LargestWindow);
                ConnectionWindow = fields.OptionalCount("connection_window", 1, LargestWindow);
            }
            fields.End();
        }
    }
}
