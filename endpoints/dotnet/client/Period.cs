using System;
using System.Linq;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>The warm-up or the measured window: requests are sent by the schedule until its extent is used up.</summary>
    sealed class Period
    {
        public readonly Sender Sender;
        /// <summary>The lanes of persistent connections; null where every request opens its connection.</summary>
        public readonly Lane[] Lanes;
        public readonly Recorder Recorder;
        public readonly long Start;
        public readonly Limit Limit;
        readonly Channel<Lane> free = Channel.CreateUnbounded<Lane>();
        long last;

        public Period(Sender sender, Lane[] lanes, Recorder recorder, Extent extent, long start)
        {
            (Sender, Lanes, Recorder, Start) = (sender, lanes, recorder, start);
            Limit = new Limit(extent, start);
            Array.ForEach(lanes ?? Array.Empty<Lane>(), lane => free.Writer.TryWrite(lane));
        }

        /// <summary>Sends the requests; ends when none is in flight, with the end of the last one.</summary>
        public async Task<long> Run()
        {
            var schedule = Sender.Spec.Schedule;
            if (schedule.IsOpen)
            {
                await new Line(this).Dispatch().ConfigureAwait(false);
            }
            else
            {
                await Task.WhenAll(Enumerable.Range(0, schedule.Workers).Select(user => Task.Run(() => Work(user))))
                    .ConfigureAwait(false);
            }
            return Math.Max(last, Start);
        }

        public Chance ChanceOf(int user) => new Chance(Sender.Spec.Seed, Recorder == null, user);

        /// <summary>Notes the end of a user's last request.</summary>
        public void Ended(long at)
        {
            for (long before; (before = Volatile.Read(ref last)) < at;)
            {
                Interlocked.CompareExchange(ref last, at, before);
            }
        }

        /// <summary>One worker of a closed loop: it sends, waits for the response, pauses, and sends again.</summary>
        async Task Work(int user)
        {
            var schedule = Sender.Spec.Schedule;
            var chance = ChanceOf(user);
            var own = Lanes == null ? new Lane(null) : Lanes.Length == schedule.Workers ? Lanes[user] : null;
            long intended = Start, end = 0;
            while (true)
            {
                if (schedule.Pauses)
                {
                    await Alarm.Until(intended).ConfigureAwait(false);
                }
                var lane = own ?? await free.Reader.ReadAsync().ConfigureAwait(false);
                // The start decides: "none starts after the end".
                var goesOn = Limit.Take(Math.Max(Clock.Now(), intended));
                if (goesOn)
                {
                    end = await Sender.Perform(lane, intended, user, Recorder).ConfigureAwait(false);
                }
                if (own == null)
                {
                    free.Writer.TryWrite(lane);
                }
                if (!goesOn)
                {
                    Ended(end);
                    return;
                }
                // Without a pause, the intended start is the moment when the worker is free, which is now.
                intended = schedule.Pauses ? end + chance.Pause(schedule) : Clock.Now();
            }
        }
    }
}
