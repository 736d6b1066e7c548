using System;
using System.Collections.Generic;
using System.Runtime.InteropServices;
using System.Threading;
using System.Threading.Tasks;

namespace Wirelab
{
    /// <summary>
    /// Waits for moments. .NET's timers count milliseconds; here one thread sleeps in the kernel, with a time-out in nanoseconds,
    /// until the next awaited moment. It starts with the first wait, and never spins.
    /// </summary>
    static class Alarm
    {
        const int SetTimerSlack = 29;
        const short Readable = 1;
        const long Never = 3_600_000_000_000;

        static readonly SortedDictionary<(long At, long Number), TaskCompletionSource<bool>> Waiting =
            new SortedDictionary<(long, long), TaskCompletionSource<bool>>();
        static long next = long.MaxValue, waits;
        static int bell = -1;

        /// <summary>Ends at a moment, or at once if that has passed; never before.</summary>
        public static Task Until(long at)
        {
            if (at <= Clock.Now())
            {
                return Task.CompletedTask;
            }
            // Continuations run on the pool: the alarm's own thread only wakes them.
            var wait = new TaskCompletionSource<bool>(TaskCreationOptions.RunContinuationsAsynchronously);
            lock (Waiting)
            {
                if (bell < 0)
                {
                    bell = eventfd(0, 0);
                    new Thread(Watch) { IsBackground = true }.Start();
                }
                Waiting.Add((at, waits++), wait);
                if (at < next)
                {
                    next = at;
                    var one = 1UL;
                    write(bell, ref one, (UIntPtr)sizeof(ulong));
                }
            }
            return wait.Task;
        }

        static void Watch()
        {
            prctl(SetTimerSlack, (UIntPtr)1);
            var due = new List<TaskCompletionSource<bool>>();
            while (true)
            {
                lock (Waiting)
                {
                    Collect(due);
                }
                foreach (var wait in due)
                {
                    wait.SetResult(true);
                }
                due.Clear();
                var left = Math.Min(Math.Max(0, Volatile.Read(ref next) - Clock.Now()), Never);
                var timeout = new Length { Seconds = left / 1_000_000_000, Nanoseconds = left % 1_000_000_000 };
                var descriptor = new Descriptor { File = bell, Events = Readable };
                if (ppoll(ref descriptor, (UIntPtr)1, ref timeout, IntPtr.Zero) > 0)
                {
                    read(bell, out _, (UIntPtr)sizeof(ulong));
                }
            }
        }

        static void Collect(List<TaskCompletionSource<bool>> due)
        {
            var now = Clock.Now();
            var passed = new List<(long, long)>();
            next = long.MaxValue;
            foreach (var wait in Waiting)
            {
                if (wait.Key.At > now)
                {
                    next = wait.Key.At;
                    break;
                }
                passed.Add(wait.Key);
                due.Add(wait.Value);
            }
            passed.ForEach(key => Waiting.Remove(key));
        }

        struct Length
        {
            public long Seconds, Nanoseconds;
        }

        struct Descriptor
        {
            public int File;
            public short Events, Returned;
        }

        [DllImport("libc")]
        static extern int eventfd(uint initial, int flags);

        [DllImport("libc")]
        static extern IntPtr write(int file, ref ulong value, UIntPtr size);

        [DllImport("libc")]
        static extern IntPtr read(int file, out ulong value, UIntPtr size);

        [DllImport("libc")]
        static extern int ppoll(ref Descriptor descriptors, UIntPtr count, ref Length timeout, IntPtr mask);

        [DllImport("libc")]
        static extern int prctl(int option, UIntPtr value);
    }
}
