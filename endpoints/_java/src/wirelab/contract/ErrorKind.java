package wirelab.contract;

import java.util.Locale;

/** Why a request failed, in the words of the contract. */
public enum ErrorKind {
    REFUSED, UNREACHABLE, CERTIFICATE, TLS, PROTOCOL, RESET, TRUNCATED, TIMEOUT, STATUS, DIGEST, LOST, OTHER;

    private final String token = name().toLowerCase(Locale.ROOT);

    public String token() {
        return token;
    }
}
