package wirelab.netty;

import io.netty.handler.codec.PrematureChannelClosureException;
import io.netty.handler.codec.http2.Http2Exception;
import io.netty.handler.codec.http3.Http3Exception;
import io.netty.handler.codec.quic.QuicStreamResetException;
import io.netty.handler.codec.quic.QuicTimeoutClosedChannelException;
import io.netty.handler.ssl.SslClosedEngineException;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.net.Causes;

/** Netty's exceptions as the contract's error kinds. */
final class Faults {
    private Faults() {
    }

    static Failure of(String attempt, Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            ErrorKind kind = kind(cause);
            if (kind != null) {
                return new Failure(kind, attempt + ": " + Causes.words(thrown));
            }
        }
        return Causes.failure(attempt, thrown);
    }

    /** Null: nothing that only Netty has. */
    private static ErrorKind kind(Throwable cause) {
        if (cause instanceof PrematureChannelClosureException) {
            return ErrorKind.TRUNCATED;
        }
        // The second one: the server was gone before the request was written.
        if (cause instanceof QuicStreamResetException || cause instanceof SslClosedEngineException) {
            return ErrorKind.RESET;
        }
        if (cause instanceof QuicTimeoutClosedChannelException) {
            return ErrorKind.TIMEOUT;
        }
        if (cause instanceof Http2Exception || cause instanceof Http3Exception) {
            // The codecs compare the length of a body with the announced one, and have no exception class for it.
            boolean length = String.valueOf(cause.getMessage()).contains("content-length");
            return length ? ErrorKind.TRUNCATED : ErrorKind.PROTOCOL;
        }
        return null;
    }
}
