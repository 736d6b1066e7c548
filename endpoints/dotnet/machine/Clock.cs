using System;
using System.Diagnostics;

namespace Wirelab
{
    /// <summary>The one monotonic clock of all records. A moment is nanoseconds; 0 is one that did not happen.</summary>
    static class Clock
    {
        const long Second = 1_000_000_000;

        public static long Now()
        {
            var ticks = Stopwatch.GetTimestamp();
            // On Linux a tick is a nanosecond.
            return Stopwatch.Frequency == Second ? ticks : (long)((decimal)ticks * Second / Stopwatch.Frequency);
        }

        /// <summary>A length for .NET's own timers, which count milliseconds: rounded up, so that they are never early.</summary>
        public static TimeSpan Milliseconds(long nanoseconds) =>
            TimeSpan.FromMilliseconds(Math.Min(int.MaxValue - 1, Math.Max(1, (nanoseconds + 999_999) / 1_000_000)));
    }
}
