package wirelab.net;

import java.io.EOFException;
import java.net.ConnectException;
import java.net.NoRouteToHostException;
import java.net.PortUnreachableException;
import java.net.ProtocolException;
import java.net.SocketTimeoutException;
import java.nio.channels.ClosedChannelException;
import java.security.cert.CertPathValidatorException;
import java.security.cert.CertificateException;
import java.util.Locale;
import javax.net.ssl.SSLException;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/** An exception of the platform as one of the contract's error kinds. */
public final class Causes {
    private Causes() {
    }

    public static Failure failure(String attempt, Throwable thrown) {
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof Failure failure) {
                return failure;
            }
        }
        return new Failure(kind(thrown), attempt + ": " + words(thrown));
    }

    /** The innermost specific cause decides. */
    public static ErrorKind kind(Throwable thrown) {
        ErrorKind found = ErrorKind.OTHER;
        boolean connecting = false;
        int depth = 0;
        for (Throwable cause = thrown; cause != null && depth++ < 20; cause = cause.getCause()) {
            ErrorKind one = one(cause);
            connecting |= cause instanceof ConnectException;
            if (one == ErrorKind.CERTIFICATE) {
                return one;
            }
            if (one != ErrorKind.OTHER && (found == ErrorKind.OTHER || found == ErrorKind.TRUNCATED)) {
                found = one;
            }
        }
        // For a refused connection, the JDK's HTTP client reports only a failure to connect, caused by the closed channel.
        boolean untold = found == ErrorKind.OTHER || found == ErrorKind.RESET;
        return connecting && untold ? ErrorKind.REFUSED : found;
    }

    private static ErrorKind one(Throwable cause) {
        String text = String.valueOf(cause.getMessage()).toLowerCase(Locale.ROOT);
        if (cause instanceof CertificateException || cause instanceof CertPathValidatorException) {
            return ErrorKind.CERTIFICATE;
        }
        if (text.contains("connection refused") || cause instanceof PortUnreachableException) {
            return ErrorKind.REFUSED;
        }
        if (cause instanceof NoRouteToHostException || text.contains("unreachable") || text.contains("no route")
            || cause instanceof ConnectException && text.contains("timed out")) {
            return ErrorKind.UNREACHABLE;
        }
        if (cause instanceof SocketTimeoutException) {
            return ErrorKind.TIMEOUT;
        }
        if (text.contains("connection reset") || text.contains("broken pipe") || text.contains("rst_stream")) {
            return ErrorKind.RESET;
        }
        if (cause instanceof SSLException) {
            return text.contains("no application protocol") || text.contains("no_application_protocol")
                ? ErrorKind.PROTOCOL : text.contains("closing inbound before receiving peer's close_notify")
                ? ErrorKind.TRUNCATED : ErrorKind.TLS;
        }
        if (cause instanceof EOFException || text.contains("bytes received: ") || text.contains("eof reached")) {
            return ErrorKind.TRUNCATED;
        }
        if (cause instanceof ClosedChannelException) {
            return ErrorKind.RESET;
        }
        // Jetty's words for an error of HTTP/2 begin with its name: `frame_size_error/...`.
        if (cause instanceof ProtocolException || text.contains("protocol") || text.contains("_error/") || text.contains("invalid status line")) {
            return ErrorKind.PROTOCOL;
        }
        return ErrorKind.OTHER;
    }

    /** The texts of an exception and its causes. */
    public static String words(Throwable thrown) {
        StringBuilder words = new StringBuilder();
        int depth = 0;
        for (Throwable cause = thrown; cause != null && depth++ < 5; cause = cause.getCause()) {
            words.append(words.length() == 0 ? "" : ", because of ").append(cause);
        }
        return words.toString();
    }

}
