using System;
using System.Collections.Generic;
using System.Linq;
using System.Net.Http;
using System.Security.Cryptography;
using System.Threading;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>A complete response, or its part before a failure. A moment that did not happen is 0.</summary>
    struct Answer
    {
        public long FirstByte, LastByte, BytesIn;
        public int Status;
    }

    /// <summary>Opens connections to the server of one spec, and sends its request over them.</summary>
    sealed class Driver
    {
        readonly ClientSpec spec;
        readonly Template template;
        readonly Dialling dialling;
        readonly Func<Connection, HttpMessageHandler> handler;
        readonly Uri[] servers;
        readonly Dictionary<string, object> configured = new Dictionary<string, object>();
        int opened, turn, looked;

        /// <summary>A driver whose connections have a handler of their own making, or that of HttpClient.</summary>
        public Driver(ClientSpec spec, Func<Connection, HttpMessageHandler> handler = null)
        {
            this.spec = spec;
            template = new Template(spec);
            dialling = new Dialling(spec, this);
            this.handler = handler ?? dialling.Handler;
            servers = spec.Addresses.Select(template.At).ToArray();
            dialling.DescribeWindows(configured);
        }

        /// <summary>The active settings known so far.</summary>
        public Dictionary<string, object> Configured
        {
            get
            {
                lock (configured)
                {
                    return new Dictionary<string, object>(configured);
                }
            }
        }

        /// <summary>Adds facts. Known facts stay: they are those of the first connection.</summary>
        public void Add(IEnumerable<KeyValuePair<string, object>> facts)
        {
            lock (configured)
            {
                facts.ToList().ForEach(fact => configured.TryAdd(fact.Key, fact.Value));
            }
        }

        /// <summary>A connection to the next of the addresses, which connects with its first request.</summary>
        public Connection New()
        {
            var server = servers[(Interlocked.Increment(ref turn) - 1) % servers.Length];
            var connection = new Connection(server, Interlocked.Increment(ref opened) - 1);
            connection.Http = new HttpClient(handler(connection)) { Timeout = Timeout.InfiniteTimeSpan };
            return connection;
        }

        /// <summary>The next connection has the number 0.</summary>
        public void Renumber() => opened = 0;

        /// <summary>Sends the request over a connection and reads the response to its end, however far it comes.</summary>
        public async Task<(Answer, Failure)> Exchange(Connection connection, Lane lane, long by, IncrementalHash hash)
        {
            var answer = new Answer();
            var connectBy = Clock.Now() + spec.ConnectNs;
            var until = lane.Until(by);
            try
            {
                using var request = template.Make(dialling.Method(connection, spec.Request.Method), connection.Server);
                using var response = await connection.Http.SendAsync(request, HttpCompletionOption.ResponseHeadersRead, until)
                    .ConfigureAwait(false);
                (answer.FirstByte, answer.Status) = (Clock.Now(), (int)response.StatusCode);
                dialling.Check(connection);
                if (response.Version != template.Version)
                {
                    throw new Failure(Kind.Protocol, $"the response is of HTTP/{response.Version}, not {template.Version}");
                }
                using var body = await response.Content.ReadAsStreamAsync().ConfigureAwait(false);
                for (int size; (size = await body.ReadAsync(lane.Buffer, until).ConfigureAwait(false)) > 0;)
                {
                    answer.BytesIn += size;
                    hash?.AppendData(lane.Buffer, 0, size);
                }
                answer.LastByte = Clock.Now();
                Look();
                return (answer, null);
            }
            catch (Exception error)
            {
                // HttpClient may say that the connection ended, which it did for this.
                var isLate = until.IsCancellationRequested || !connection.IsReady && Clock.Now() >= connectBy;
                return (answer, Faults.Of(error, connection, isLate));
            }
            finally
            {
                lane.Disarm();
            }
        }

        /// <summary>Reads the socket's options back once, from the first connection while it is open.</summary>
        void Look()
        {
            if (Volatile.Read(ref looked) == 0 && Interlocked.Exchange(ref looked, 1) == 0 && !spec.IsHttp3)
            {
                var socket = TcpOptions.ConnectedTo(spec.Port);
                if (socket >= 0)
                {
                    Add(TcpOptions.ActiveSettings(socket));
                }
            }
        }
    }
}
