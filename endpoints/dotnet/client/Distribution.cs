using System;
using System.Buffers.Binary;
using System.Collections.Generic;
using System.IO;

namespace Wirelab.Client
{
    /// <summary>
    /// A histogram of nanoseconds in the buckets of HdrHistogram with three significant digits, with exact extremes and sum.
    /// The library itself would be a package; of it only counting and the V2 encoding are needed.
    /// </summary>
    sealed class Distribution
    {
        // 2048 values of full resolution. Each further bucket is twice as coarse and has the upper half of the values.
        const int HalfBits = 10, Half = 1 << HalfBits, Full = 2 * Half;
        const int Cookie = 0x1c849303 | 0x10;
        const long Longest = 86_400_000_000_000;

        readonly long[] counts = new long[Index(Longest) + 1];
        long count, min = long.MaxValue, max, sum;

        public void Add(long from, long to)
        {
            var value = Math.Max(0, to - from);
            counts[Index(Math.Min(value, Longest))]++;
            count++;
            (min, max, sum) = (Math.Min(min, value), Math.Max(max, value), sum + value);
        }

        static int Index(long value)
        {
            var bucket = 0;
            for (; value >= Full; value >>= 1)
            {
                bucket++;
            }
            return bucket * Half + (int)value;
        }

        public void Merge(Distribution other)
        {
            for (var i = 0; i < counts.Length; i++)
            {
                counts[i] += other.counts[i];
            }
            (count, min) = (count + other.count, Math.Min(min, other.min));
            (max, sum) = (Math.Max(max, other.max), sum + other.sum);
        }

        public Dictionary<string, object> Encode() => new Dictionary<string, object>
        {
            ["v2"] = count == 0 ? "" : Convert.ToBase64String(V2()),
            ["count"] = count,
            ["min_ns"] = count == 0 ? 0 : min,
            ["max_ns"] = max,
            ["sum_ns"] = sum,
        };

        byte[] V2()
        {
            const int header = 40, digits = 3;
            var payload = Payload();
            var bytes = new byte[header + payload.Length];
            BinaryPrimitives.WriteInt32BigEndian(bytes, Cookie);
            BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(4), payload.Length);
            BinaryPrimitives.WriteInt32BigEndian(bytes.AsSpan(12), digits);
            BinaryPrimitives.WriteInt64BigEndian(bytes.AsSpan(16), 1);
            BinaryPrimitives.WriteInt64BigEndian(bytes.AsSpan(24), Longest);
            BinaryPrimitives.WriteInt64BigEndian(bytes.AsSpan(32), BitConverter.DoubleToInt64Bits(1));
            payload.CopyTo(bytes, header);
            return bytes;
        }

        /// <summary>Counts up to the last that is not 0; a run of zeros is its length, negative.</summary>
        byte[] Payload()
        {
            var payload = new MemoryStream();
            var last = Array.FindLastIndex(counts, number => number != 0);
            for (var i = 0; i <= last;)
            {
                var from = i;
                while (i <= last && counts[i] == 0)
                {
                    i++;
                }
                WriteZigZag(payload, i > from ? from - i : counts[i++]);
            }
            return payload.ToArray();
        }

        static void WriteZigZag(Stream payload, long value)
        {
            const int longest = 9;
            var left = (ulong)(value << 1 ^ value >> 63);
            for (var size = 1; size < longest && left >= 0x80; size++, left >>= 7)
            {
                payload.WriteByte((byte)(left | 0x80));
            }
            payload.WriteByte((byte)left);
        }
    }
}
