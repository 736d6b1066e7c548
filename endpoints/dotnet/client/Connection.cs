using System;
using System.Net.Http;
using System.Threading;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>
    /// One connection. HttpClient has none to ask for, only a pool; so each is an HttpClient of its own, which connects with its
    /// first request and may connect once only. It can be used by several lanes; it is closed when the last one has left.
    /// </summary>
    sealed class Connection
    {
        public HttpClient Http;
        public readonly Uri Server;
        public readonly int Number;
        /// <summary>When its transport was connected, and when TLS was ready.</summary>
        public long Connected, Ready;
        public Handshake Handshake;
        /// <summary>The failure, if the library's own exception does not show it.</summary>
        public Failure Refusal;
        readonly object door = new object();
        int users, dialled;
        bool abandoned;

        public Connection(Uri server, int number) => (Server, Number) = (server, number);

        /// <summary>Whether it can send: TLS is ready, or TCP is connected without TLS.</summary>
        public bool IsReady => (Server.Scheme == "https" ? Ready : Connected) != 0;

        /// <summary>Notes that it connects. A second time would be another connection, behind the engine's back.</summary>
        public void Dial()
        {
            if (Interlocked.Exchange(ref dialled, 1) != 0)
            {
                throw new Failure(Kind.Reset, "the connection was lost");
            }
        }

        /// <summary>Begins a request, unless it was given up.</summary>
        public bool Enter()
        {
            lock (door)
            {
                users += abandoned ? 0 : 1;
                return !abandoned;
            }
        }

        public void Leave()
        {
            lock (door)
            {
                users--;
                Close();
            }
        }

        /// <summary>Accepts no further request.</summary>
        public void Abandon()
        {
            lock (door)
            {
                if (!abandoned)
                {
                    abandoned = true;
                    Close();
                }
            }
        }

        void Close()
        {
            if (abandoned && users == 0)
            {
                Http.Dispose();
            }
        }
    }
}
