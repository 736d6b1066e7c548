using System.Linq;
using System.Net;
using System.Text.Json;

namespace Wirelab.Contract
{
    /// <summary>The spec of a client.</summary>
    sealed class ClientSpec : Spec
    {
        public readonly IPAddress[] Addresses;
        public readonly string TrustAnchor;
        public readonly bool Verify;
        public readonly Request Request;
        public readonly bool PerRequest;
        /// <summary>Those of persistent connections.</summary>
        public readonly int Connections, Streams = 1;
        public readonly Schedule Schedule;
        public readonly Extent Extent, WarmUp;
        public readonly long ConnectNs, RequestNs;
        public readonly ulong Seed;
        public readonly bool Histograms;
        public readonly string Results;

        public ClientSpec(Fields fields, string[] protocols) : base(fields, protocols)
        {
            Addresses = fields.Has("addresses")
                ? fields.List("addresses").Select(address => ParseAddress(address.ToString())).ToArray()
                : new[] { Address };
            if (fields.OptionalFlag("resolves") == true)
            {
                throw new Unsupported("spec: `resolves`: this client takes the addresses of the start");
            }
            if (IsSecure)
            {
                var tls = fields.Inner("tls");
                (TrustAnchor, Verify) = (tls.OptionalText("trust_anchor"), tls.Flag("verify"));
                tls.End();
            }
            if (fields.Has("resumption"))
            {
                // .NET does not tell whether a handshake was resumed.
                fields.Choose("resumption", "none");
            }
            Request = new Request(fields.Inner("request"));
            var policy = fields.Inner("connections");
            PerRequest = policy.Choose("policy", "per_request", "persistent") == "per_request";
            if (!PerRequest)
            {
                Connections = (int)policy.Count("connections", 1, int.MaxValue);
                Streams = (int)policy.Count("streams", 1, Multiplexes ? int.MaxValue : 1);
            }
            policy.End();
            Schedule = new Schedule(fields.Inner("schedule"));
            Extent = new Extent(fields.Inner("extent"));
            WarmUp = fields.Has("warm_up") ? new Extent(fields.Inner("warm_up")) : null;
            var timeouts = fields.Inner("timeouts");
            ConnectNs = timeouts.Count("connect_ns", 1, long.MaxValue / 4);
            RequestNs = timeouts.Count("request_ns", 1, long.MaxValue / 4);
            timeouts.End();
            var seed = fields.Take("seed");
            Seed = seed.ValueKind == JsonValueKind.Number && seed.TryGetUInt64(out var number)
                ? number
                : throw fields.Wrong("seed", seed, "whole numbers");
            Histograms = fields.Choose("recording", "samples", "histograms") == "histograms";
            Results = fields.Text("results");
            fields.End();
        }
    }

    /// <summary>One request, repeated.</summary>
    sealed class Request
    {
        public readonly string Method, Path;
        public readonly long BodySize;
        public readonly (string Name, string Value)[] Headers = { };
        /// <summary>A right response; null if wirelab did not start the server.</summary>
        public readonly Expect Expect;

        public Request(Fields fields)
        {
            (Method, Path) = (fields.Text("method"), fields.Text("path"));
            BodySize = fields.Count("body_size", 0, long.MaxValue);
            if (fields.Has("headers"))
            {
                Headers = fields.List("headers").Select(pair => (pair[0].GetString(), pair[1].GetString())).ToArray();
            }
            if (fields.Has("expect"))
            {
                Expect = new Expect(fields.Inner("expect"));
            }
            fields.End();
        }
    }

    sealed class Expect
    {
        public readonly int Status;
        public readonly long BodySize;
        public readonly string Sha256;

        public Expect(Fields fields)
        {
            Status = (int)fields.Count("status", 100, 999);
            BodySize = fields.Count("body_size", 0, long.MaxValue);
            Sha256 = fields.Text("sha256");
            fields.End();
        }
    }
}
