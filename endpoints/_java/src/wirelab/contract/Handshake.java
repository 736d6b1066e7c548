package wirelab.contract;

import java.util.Locale;

/** How a connection with TLS began, as the library proves it. */
public enum Handshake {
    FULL, RESUMED, EARLY_ACCEPTED, EARLY_REJECTED;

    private final String token = name().toLowerCase(Locale.ROOT);

    public String token() {
        return token;
    }
}
