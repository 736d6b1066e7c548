using System;
using System.Linq;
using System.Security.Cryptography;
using System.Threading;
using System.Threading.Tasks;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>Sends single requests, and checks and records their results.</summary>
    sealed class Sender
    {
        public readonly ClientSpec Spec;
        public readonly Driver Driver;
        /// <summary>The first failure of the window, for the log.</summary>
        public Failure First;

        public Sender(ClientSpec spec, Driver driver) => (Spec, Driver) = (spec, driver);

        /// <summary>Sends one request over a lane and keeps its record, if there is a recorder. Returns the end.</summary>
        public async Task<long> Perform(Lane lane, long intended, int user, Recorder recorder)
        {
            // Where each request has a connection of its own, its HttpClient is made before the request starts.
            var connection = lane.Link == null ? Driver.New() : null;
            connection?.Enter();
            var start = Clock.Now();
            var opened = true;
            connection ??= lane.Link.Take(Driver, out opened);
            var record = new Record
            {
                Intended = Math.Min(intended, start), Start = start, BytesOut = Spec.Request.BodySize,
                Connection = connection.Number, Opened = opened,
            };
            var (answer, failure) = await Driver.Exchange(connection, lane, start + Spec.RequestNs, null).ConfigureAwait(false);
            (record.FirstByte, record.End) = (answer.FirstByte, answer.LastByte);
            (record.BytesIn, record.Status) = (answer.BytesIn, answer.Status);
            failure ??= Judge(answer);
            if (opened)
            {
                (record.Connected, record.Ready, record.Handshake) =
                    (connection.Connected, connection.Ready, connection.Handshake);
            }
            if (failure != null)
            {
                (record.Error, record.End) = (failure.Kind, Clock.Now());
                if (!connection.IsReady)
                {
                    record.BytesOut = 0;
                }
            }
            if (recorder != null)
            {
                recorder.Keep(user, record);
                if (failure != null)
                {
                    Interlocked.CompareExchange(ref First, failure, null);
                }
            }
            // Closing is not part of the request's time.
            if (lane.Link == null || failure != null && !(connection.IsReady && Survives(failure.Kind)))
            {
                connection.Abandon();
            }
            connection.Leave();
            return record.End;
        }

        // With one request at a time, its late response would be taken for that of the next one.
        bool Survives(Kind kind) =>
            Spec.Multiplexes && (kind == Kind.Timeout || kind == Kind.Status || kind == Kind.Digest);

        /// <summary>Why a complete response is wrong; null: it is right.</summary>
        Failure Judge(Answer answer)
        {
            var expect = Spec.Request.Expect;
            if (expect == null)
            {
                // To measure a redirect instead of its target would give a wrong number that looks right. 304 is no redirect.
                return answer.Status >= 300 && answer.Status != 304
                    ? new Failure(Kind.Status, $"the server answered with status {answer.Status}; redirects are not followed")
                    : null;
            }
            if (answer.Status != expect.Status)
            {
                return new Failure(Kind.Status, $"the server answered with status {answer.Status} instead of {expect.Status}");
            }
            var size = $"the response has {answer.BytesIn} bytes instead of {expect.BodySize}";
            return answer.BytesIn == expect.BodySize ? null
                : new Failure(answer.BytesIn < expect.BodySize ? Kind.Truncated : Kind.Digest, size);
        }

        /// <summary>
        /// Sends the check request, the only one whose body is hashed. Without an expectation in the spec, no check is possible.
        /// </summary>
        public async Task Check()
        {
            var expect = Spec.Request.Expect;
            if (expect == null)
            {
                return;
            }
            using var hash = IncrementalHash.CreateHash(HashAlgorithmName.SHA256);
            var connection = Driver.New();
            connection.Enter();
            var (answer, failure) = await Driver.Exchange(connection, new Lane(null), Clock.Now() + Spec.RequestNs, hash);
            failure ??= Judge(answer);
            var digest = string.Concat(hash.GetHashAndReset().Select(value => value.ToString("x2")));
            if (failure == null && !digest.Equals(expect.Sha256, StringComparison.OrdinalIgnoreCase))
            {
                failure = new Failure(Kind.Digest, $"the response has the SHA-256 {digest} instead of {expect.Sha256}");
            }
            connection.Abandon();
            connection.Leave();
            Demand(failure, "the check request");
        }

        /// <summary>Opens a persistent connection by the request of the spec: HttpClient connects no other way.</summary>
        public async Task Open(Link link)
        {
            var connection = link.Take(Driver, out _);
            var (_, failure) = await Driver.Exchange(connection, new Lane(null), Clock.Now() + Spec.RequestNs, null);
            connection.Leave();
            Demand(failure, "the request that opens a connection");
        }

        void Demand(Failure failure, string attempt)
        {
            if (failure != null)
            {
                var request = $"{Spec.Request.Method} {Spec.Request.Path} from {Spec.Address} port {Spec.Port} over {Spec.Protocol}";
                throw new Failure(failure.Kind, $"{attempt} ({request}) failed: {failure.Message}");
            }
        }
    }
}
