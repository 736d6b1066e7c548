package wirelab.kwik;

import java.io.EOFException;
import java.util.Locale;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.net.Causes;

/** kwik's exceptions as the contract's error kinds. Most differ only in their text. */
final class Faults {
    private Faults() {
    }

    static Failure connecting(String attempt, Throwable thrown) {
        String text = Causes.words(thrown).toLowerCase(Locale.ROOT);
        ErrorKind kind = Causes.kind(thrown);
        if (text.contains("timed out")) {
            kind = ErrorKind.TIMEOUT;
        } else if (text.contains("certificate") || text.contains("servername does not match")) {
            kind = ErrorKind.CERTIFICATE;
        } else if (text.contains("no_application_protocol") || text.contains("0x178") || text.contains(": 376")) {
            kind = ErrorKind.PROTOCOL;
        } else if (text.contains("handshake error")) {
            kind = ErrorKind.TLS;
        }
        return new Failure(kind, attempt + ": " + Causes.words(thrown));
    }

    static Failure of(String attempt, Throwable thrown) {
        String text = Causes.words(thrown).toLowerCase(Locale.ROOT);
        if (text.contains("reset") || text.contains("connection closed") || text.contains("connection has been")) {
            return new Failure(ErrorKind.RESET, attempt + ": " + Causes.words(thrown));
        }
        if (thrown instanceof EOFException) {
            return new Failure(ErrorKind.TRUNCATED, attempt + ": " + Causes.words(thrown));
        }
        return Causes.failure(attempt, thrown);
    }
}
