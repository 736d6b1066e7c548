package wirelab.contract;

import java.util.Locale;

/** The protocol of client and server. */
public enum Protocol {
    UDP(null), TCP(null), TLS("wirelab"), QUIC("wirelab"), H1C(null), H1("http/1.1"), H2C(null), H2("h2"), H3("h3");

    /** The identifier that TLS negotiates; null in clear text. */
    public final String alpn;

    Protocol(String alpn) {
        this.alpn = alpn;
    }

    public String token() {
        return name().toLowerCase(Locale.ROOT);
    }

    public boolean isSecure() {
        return alpn != null;
    }

    public boolean isHttp() {
        return compareTo(H1C) >= 0;
    }

    /** Whether a connection carries several requests at a time. */
    public boolean multiplexes() {
        return this == QUIC || compareTo(H2C) >= 0;
    }
}
