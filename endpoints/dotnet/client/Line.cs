using System;
using System.Collections.Generic;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>
    /// An open loop: a request starts at each arrival, whatever became of the earlier ones. It has a connection or a stream of its
    /// own where the policy allows for it; otherwise it waits in line, with its response time running since its arrival. What
    /// arrived within the period is sent even if it waited beyond its end: to drop it would leave out the slowest requests.
    /// The wait has a limit, the request time-out after the end; what waits longer fails by time-out.
    /// </summary>
    sealed class Line
    {
        readonly Period period;
        readonly Queue<long> waiting = new Queue<long>();
        // The carrier that has been idle longest is the next, so that requests are spread over all connections.
        readonly Queue<TaskCompletionSource<long?>> idle = new Queue<TaskCompletionSource<long?>>();
        readonly List<Task> carriers = new List<Task>();
        // The latest start of a waiting request, once no more arrivals come.
        long latestStart = long.MaxValue;
        bool ended;

        public Line(Period period) => this.period = period;

        public async Task Dispatch()
        {
            var arrivals = new Arrivals(period.Sender.Spec.Schedule, period.Start, period.ChanceOf(0));
            for (long at; period.Limit.Take(at = arrivals.Next());)
            {
                await Alarm.Until(at).ConfigureAwait(false);
                Arrive(at);
            }
            End();
            await Task.WhenAll(carriers).ConfigureAwait(false);
        }

        /// <summary>Gives a request to an idle carrier, or to a new one, or lets it wait.</summary>
        void Arrive(long at)
        {
            lock (waiting)
            {
                if (idle.Count > 0)
                {
                    idle.Dequeue().SetResult(at);
                }
                else if (period.Lanes != null && carriers.Count == period.Lanes.Length)
                {
                    waiting.Enqueue(at);
                }
                else
                {
                    var user = carriers.Count;
                    var lane = period.Lanes == null ? new Lane(null) : period.Lanes[user];
                    carriers.Add(Task.Run(() => Carry(lane, at, user)));
                }
            }
        }

        /// <summary>Stops the carriers when no request waits any more.</summary>
        void End()
        {
            lock (waiting)
            {
                ended = true;
                latestStart = Math.Max(Clock.Now(), period.Start) + period.Sender.Spec.RequestNs;
                foreach (var carrier in idle)
                {
                    carrier.SetResult(null);
                }
            }
        }

        /// <summary>Sends requests over one lane, one after the other.</summary>
        async Task Carry(Lane lane, long first, int user)
        {
            var end = 0L;
            for (long? at = first; at != null; at = await Next().ConfigureAwait(false))
            {
                end = Clock.Now() > System.Threading.Volatile.Read(ref latestStart)
                    ? GiveUp(at.Value, user)
                    : await period.Sender.Perform(lane, at.Value, user, period.Recorder).ConfigureAwait(false);
            }
            period.Ended(end);
        }

        /// <summary>The next arrival for a carrier; null: no arrival follows.</summary>
        Task<long?> Next()
        {
            lock (waiting)
            {
                if (waiting.Count > 0 || ended)
                {
                    return Task.FromResult(waiting.Count > 0 ? waiting.Dequeue() : (long?)null);
                }
                var next = new TaskCompletionSource<long?>(TaskCreationOptions.RunContinuationsAsynchronously);
                idle.Enqueue(next);
                return next.Task;
            }
        }

        long GiveUp(long intended, int user)
        {
            var now = Clock.Now();
            period.Recorder?.Keep(user, new Record { Intended = intended, Start = now, End = now, Error = Kind.Timeout });
            return now;
        }
    }
}
