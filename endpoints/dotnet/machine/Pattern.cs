using System;
using System.IO;
using System.Threading;
using System.Threading.Tasks;

namespace Wirelab
{
    /// <summary>The body whose byte at offset i is i mod 251.</summary>
    static class Pattern
    {
        const int Period = 251;

        // Whole periods, so that one block can follow the other.
        static readonly byte[] Block = Make();

        static byte[] Make()
        {
            var block = new byte[Period * 256];
            for (var i = 0; i < block.Length; i++)
            {
                block[i] = (byte)(i % Period);
            }
            return block;
        }

        public static async Task Write(Stream stream, long size, CancellationToken cancelled = default)
        {
            for (; size > 0; size -= Block.Length)
            {
                await stream.WriteAsync(Block.AsMemory(0, (int)Math.Min(size, Block.Length)), cancelled).ConfigureAwait(false);
            }
        }
    }
}
