package wirelab.contract;

import java.net.InetAddress;
import java.net.UnknownHostException;

/** IP addresses in text. */
public final class Address {
    private Address() {
    }

    /** A literal address; no name is looked up. */
    public static InetAddress of(String text) {
        if (!text.matches("[0-9.]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*")) {
            throw new Unsupported("spec: `address` = `" + text + "`; supported: IP addresses");
        }
        try {
            return InetAddress.getByName(text);
        } catch (UnknownHostException none) {
            throw new Unsupported("spec: `address` = `" + text + "`; supported: IP addresses");
        }
    }
}
