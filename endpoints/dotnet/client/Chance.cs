using System;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>
    /// The random numbers of one user (a worker of a closed loop, or the arrivals) in one period, by the spec's seed: SplitMix64,
    /// since that of .NET takes a seed of 32 bits.
    /// </summary>
    sealed class Chance
    {
        const ulong Golden = 0x9e3779b97f4a7c15;

        ulong state;

        public Chance(ulong seed, bool isWarmUp, int user)
        {
            state = seed;
            // Mixed, not added: neighbouring users are not to have neighbouring states.
            state = Next() + (isWarmUp ? 1UL : 0);
            state = Next() + (ulong)user;
        }

        ulong Next()
        {
            var z = state += Golden;
            z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
            z = (z ^ z >> 27) * 0x94d049bb133111eb;
            return z ^ z >> 31;
        }

        // Of 53 bits, below 1.
        double Uniform() => (Next() >> 11) * (1.0 / (1UL << 53));

        /// <summary>The next pause of a closed loop.</summary>
        public long Pause(Schedule schedule) =>
            schedule.MinPause + (long)(Uniform() * (schedule.MaxPause - schedule.MinPause + 1));

        /// <summary>Exponentially distributed with mean 1.</summary>
        public double Exponential() => -Math.Log(1 - Uniform());
    }
}
