using System.Threading;

namespace Wirelab.Client
{
    /// <summary>
    /// Carries one request at a time, and keeps the memory of its requests: made once, because work that is the same
    /// for every request is not part of the measurement.
    /// </summary>
    sealed class Lane
    {
        const int ReadSize = 64 * 1024;

        public readonly byte[] Buffer = new byte[ReadSize];
        /// <summary>The persistent connection that it belongs to; null where every request opens its own.</summary>
        public readonly Link Link;
        CancellationTokenSource deadline = new CancellationTokenSource();

        public Lane(Link link) => Link = link;

        /// <summary>Arms the deadline of a request.</summary>
        public CancellationToken Until(long moment)
        {
            deadline.CancelAfter(Clock.Milliseconds(moment - Clock.Now()));
            return deadline.Token;
        }

        /// <summary>Lets it go, the same for the next request unless it has passed.</summary>
        public void Disarm()
        {
            deadline.CancelAfter(Timeout.Infinite);
            if (deadline.IsCancellationRequested)
            {
                deadline.Dispose();
                deadline = new CancellationTokenSource();
            }
        }
    }

    /// <summary>A persistent connection, shared by the lanes that have a stream of it.</summary>
    sealed class Link
    {
        Connection current;

        /// <summary>The connection for a request; a new one if the old one cannot carry it.</summary>
        public Connection Take(Driver driver, out bool opened)
        {
            lock (this)
            {
                opened = current == null || !current.Enter();
                if (opened)
                {
                    current = driver.New();
                    current.Enter();
                }
                return current;
            }
        }

        /// <summary>Closes it when nothing is in flight.</summary>
        public void Close()
        {
            lock (this)
            {
                current?.Abandon();
                current = null;
            }
        }
    }
}
