using System;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Text;
using System.Threading;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>Keeps every record, in chunks; the expected ones are made and touched before the window.</summary>
    sealed class Samples : Recorder
    {
        const int ChunkRecords = 1 << 14, MostChunks = 1 << 14;
        const long MostExpected = 500_000;
        // An estimate: more than HttpClient reaches.
        const double FastPerSecond = 50_000;

        readonly Record[][] chunks = new Record[MostChunks][];
        long count = -1;

        public Samples(ClientSpec spec)
        {
            for (long expected = Expected(spec), i = 0; i * ChunkRecords < expected; i++)
            {
                chunks[i] = new Record[ChunkRecords];
                Array.Fill(chunks[i], new Record { End = 1 });
            }
        }

        static long Expected(ClientSpec spec)
        {
            var rate = spec.Schedule.IsOpen ? 1.1 * spec.Schedule.Rate : FastPerSecond;
            var expected = spec.Extent.Requests > 0 ? spec.Extent.Requests : rate * spec.Extent.DurationNs / 1e9;
            return (long)Math.Min(expected, MostExpected);
        }

        public override void Keep(int user, in Record record)
        {
            var number = Interlocked.Increment(ref count);
            ref var chunk = ref chunks[number / ChunkRecords];
            if (chunk == null)
            {
                Interlocked.CompareExchange(ref chunk, new Record[ChunkRecords], null);
            }
            chunk[number % ChunkRecords] = record;
        }

        IEnumerable<Record> All()
        {
            for (long i = 0; i <= count; i++)
            {
                yield return chunks[i / ChunkRecords][i % ChunkRecords];
            }
        }

        public override (long, Dictionary<string, object>) Count()
        {
            var failed = All().Where(record => record.Error != Kind.None).GroupBy(record => record.Error).ToList();
            var errors = failed.ToDictionary(kind => kind.Key.Token(), kind => (object)kind.LongCount());
            return (count + 1 - failed.Sum(kind => kind.LongCount()), errors);
        }

        public override void Write(TextWriter results, long zero)
        {
            var line = new StringBuilder();
            foreach (var record in All().OrderBy(record => record.Intended).ThenBy(record => record.Start))
            {
                record.AppendJson(line.Clear(), zero);
                results.Write(line);
            }
        }
    }
}
