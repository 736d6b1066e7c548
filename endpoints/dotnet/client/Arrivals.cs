using System.Threading;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>The arrivals of an open loop.</summary>
    sealed class Arrivals
    {
        readonly long start;
        readonly double interval;
        readonly Chance chance;
        double last;
        long number;

        public Arrivals(Schedule schedule, long start, Chance chance)
        {
            (this.start, interval) = (start, 1e9 / schedule.Rate);
            this.chance = schedule.IsPoisson ? chance : null;
        }

        // At equal intervals from the number of the arrival, not by adding up: rounding errors do not accumulate.
        public long Next() =>
            start + (long)(chance == null ? number++ * interval : last += chance.Exponential() * interval);
    }

    /// <summary>The number of requests that may still start, or the latest start. All users of a period share it.</summary>
    sealed class Limit
    {
        readonly Extent extent;
        readonly long until;
        long left;

        public Limit(Extent extent, long start) =>
            (this.extent, left, until) = (extent, extent.Requests, start + extent.DurationNs);

        /// <summary>Takes one request that starts at a moment; false: none is left.</summary>
        public bool Take(long at) =>
            extent.Requests > 0 ? Interlocked.Decrement(ref left) >= 0 : at < until;
    }
}
