using System;

namespace Wirelab.Contract
{
    /// <summary>Why a request or an endpoint failed, in the words of the contract.</summary>
    enum Kind : byte
    {
        None, Refused, Unreachable, Certificate, Tls, Protocol, Reset, Truncated, Timeout, Status, Digest, Other
    }

    /// <summary>How a connection with TLS began. A client offers no tickets, so that there is one way only.</summary>
    enum Handshake : byte
    {
        None, Full
    }

    /// <summary>Something went wrong: exit status 1, or the error of a record.</summary>
    sealed class Failure : Exception
    {
        public readonly Kind Kind;

        public Failure(Kind kind, string message) : base(message) => Kind = kind;
    }

    /// <summary>The spec asks for something that this endpoint cannot do: exit status 127.</summary>
    sealed class Unsupported : Exception
    {
        public Unsupported(string message) : base(message) { }
    }

    static class Words
    {
        /// <summary>A kind or a handshake as the contract writes it.</summary>
        public static string Token(this Enum word) => word.ToString().ToLowerInvariant();
    }
}
