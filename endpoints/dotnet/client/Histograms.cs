using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text.Json;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>
    /// Keeps distributions and sums, in as many parts as there are processors, so that users seldom wait for one another.
    /// </summary>
    sealed class Histograms : Recorder
    {
        readonly Counters[] parts = Enumerable.Range(0, Environment.ProcessorCount).Select(_ => new Counters()).ToArray();

        public override void Keep(int user, in Record record)
        {
            var part = parts[user % parts.Length];
            lock (part)
            {
                part.Count(record);
            }
        }

        Counters Sum()
        {
            var sum = new Counters();
            foreach (var part in parts)
            {
                sum.Merge(part);
            }
            return sum;
        }

        public override (long, Dictionary<string, object>) Count()
        {
            var sum = Sum();
            return (sum.Requests, Counters.Json(sum.Errors));
        }

        public override void Write(TextWriter results, long zero) => results.WriteLine(JsonSerializer.Serialize(Sum().Json()));
    }

    sealed class Counters
    {
        public long Requests;
        public readonly Dictionary<string, long> Errors = new Dictionary<string, long>();
        readonly Dictionary<string, long> handshakes = new Dictionary<string, long>();
        readonly Distribution response = new Distribution(), service = new Distribution(), lag = new Distribution(),
            handshake = new Distribution(), firstByte = new Distribution(), failure = new Distribution();
        long bytesIn, bytesOut, connections;

        public void Count(in Record record)
        {
            lag.Add(record.Intended, record.Start);
            connections += record.Opened ? 1 : 0;
            if (record.Handshake != Handshake.None)
            {
                Add(handshakes, record.Handshake.Token(), 1);
            }
            if (record.Error != Kind.None)
            {
                Add(Errors, record.Error.Token(), 1);
                failure.Add(record.Intended, record.End);
                return;
            }
            Requests++;
            bytesIn += record.BytesIn;
            bytesOut += record.BytesOut;
            response.Add(record.Intended, record.End);
            service.Add(record.Start, record.End);
            firstByte.Add(record.Start, record.FirstByte);
            var ready = Math.Max(record.Connected, record.Ready);
            if (record.Opened && ready != 0)
            {
                handshake.Add(record.Start, ready);
            }
        }

        public void Merge(Counters other)
        {
            Requests += other.Requests;
            bytesIn += other.bytesIn;
            bytesOut += other.bytesOut;
            connections += other.connections;
            other.Errors.ToList().ForEach(error => Add(Errors, error.Key, error.Value));
            other.handshakes.ToList().ForEach(way => Add(handshakes, way.Key, way.Value));
            foreach (var (mine, others) in Distributions().Zip(other.Distributions(), (mine, others) => (mine.Value, others.Value)))
            {
                mine.Merge(others);
            }
        }

        static void Add(Dictionary<string, long> counts, string name, long more) =>
            counts[name] = more + (counts.TryGetValue(name, out var before) ? before : 0);

        Dictionary<string, Distribution> Distributions() => new Dictionary<string, Distribution>
        {
            ["response"] = response, ["service"] = service, ["lag"] = lag, ["handshake"] = handshake,
            ["first_byte"] = firstByte, ["failure"] = failure,
        };

        public static Dictionary<string, object> Json(Dictionary<string, long> counts) =>
            counts.ToDictionary(count => count.Key, count => (object)count.Value);

        public Dictionary<string, object> Json()
        {
            var json = Distributions().ToDictionary(one => one.Key, one => (object)one.Value.Encode());
            json["requests"] = Requests;
            json["errors"] = Json(Errors);
            json["bytes_in"] = bytesIn;
            json["bytes_out"] = bytesOut;
            json["connections"] = connections;
            json["handshakes"] = Json(handshakes);
            return json;
        }
    }
}
