package wirelab.jetty;

import java.io.EOFException;
import java.util.Locale;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.net.Causes;

/** Failures of quiche, by their names in the messages of Jetty's exceptions, as the contract's error kinds. */
final class QuicFaults {
    private QuicFaults() {
    }

    static Failure of(String attempt, Throwable thrown) {
        return new Failure(kind(thrown), attempt + ": " + Causes.words(thrown));
    }

    private static ErrorKind kind(Throwable thrown) {
        String words = Causes.words(thrown).toUpperCase(Locale.ROOT);
        if (words.contains("CRYPTO_ERROR") || words.contains("QUICHE_ERR_TLS_FAIL")) {
            return tls(words);
        }
        for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
            if (cause instanceof EOFException) { // in Jetty's words the end of a connection, or a reset of a stream
                return ErrorKind.RESET;
            }
        }
        return Causes.kind(thrown);
    }

    /** By the alert that quiche closed the connection with (RFC 8446, section 6.2). */
    private static ErrorKind tls(String words) {
        if (words.contains("NO_APPLICATION_PROTOCOL")) {
            return ErrorKind.PROTOCOL;
        }
        return words.contains("CERTIFICATE") || words.contains("UNKNOWN_CA") ? ErrorKind.CERTIFICATE : ErrorKind.TLS;
    }
}
