using System;
using System.Collections.Generic;
using System.Net.Http;
using System.Net.Sockets;
using System.Security.Authentication;
using Wirelab.Contract;

namespace Wirelab.Client
{
    /// <summary>Puts exceptions into the classes of the contract.</summary>
    static class Faults
    {
        public static Failure Of(Exception error, Connection connection, bool isLate)
        {
            if (connection.Refusal != null)
            {
                return connection.Refusal;
            }
            var kind = Kind.Other;
            var words = new List<string>();
            for (var inner = error; inner != null; inner = inner.InnerException)
            {
                if (inner is Failure failure)
                {
                    return failure;
                }
                // The innermost specific exception: the outer ones describe the attempt.
                var said = OfOne(inner);
                kind = said == Kind.None ? kind : said;
                words.Add($"{inner.GetType().Name}: {inner.Message}");
            }
            var shakesHands = connection.Connected != 0 && !connection.IsReady;
            kind = shakesHands && (kind == Kind.Other || kind == Kind.Truncated) ? Kind.Tls : kind;
            return new Failure(isLate ? Kind.Timeout : kind, string.Join(" < ", words));
        }

        static Kind OfOne(Exception error)
        {
            switch (error)
            {
                // Only a deadline cancels.
                case OperationCanceledException _:
                case TimeoutException _:
                    return Kind.Timeout;
                case SocketException socket:
                    return OfSocket(socket.SocketErrorCode);
                case AuthenticationException _:
                    return Kind.Tls;
                default:
                    return OfText(error);
            }
        }

        static Kind OfSocket(SocketError error)
        {
            switch (error)
            {
                case SocketError.ConnectionRefused:
                    return Kind.Refused;
                case SocketError.HostUnreachable:
                case SocketError.NetworkUnreachable:
                case SocketError.NetworkDown:
                case SocketError.TimedOut:
                    return Kind.Unreachable;
                // Shutdown is EPIPE: the peer has reset the connection before.
                case SocketError.ConnectionReset:
                case SocketError.ConnectionAborted:
                case SocketError.Shutdown:
                    return Kind.Reset;
                case SocketError.OperationAborted:
                    return Kind.Timeout;
                default:
                    return Kind.Other;
            }
        }

        // Most of what HttpClient knows it says in words alone.
        static Kind OfText(Exception error)
        {
            bool Has(string part) => error.Message.IndexOf(part, StringComparison.OrdinalIgnoreCase) >= 0;
            if (Has("ended prematurely") || Has("unexpected EOF") || Has("0 bytes from the transport stream"))
            {
                return Kind.Truncated;
            }
            if (Has("reset the stream") || Has("GOAWAY"))
            {
                return Kind.Reset;
            }
            var isInvalid = Has("invalid") || Has("protocol error") || Has("PROTOCOL_ERROR") || Has("FRAME_SIZE_ERROR")
                || Has("did not complete the HTTP/2 handshake");
            // Internal ones too, whose names begin so.
            var isOfHttp = error is HttpRequestException || error.GetType().Name.StartsWith("Http");
            return isInvalid && isOfHttp ? Kind.Protocol : Kind.None;
        }
    }
}
