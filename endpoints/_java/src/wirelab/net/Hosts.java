package wirelab.net;

import java.io.IOException;
import java.net.InetAddress;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Security;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/**
 * Maps the server's name to its address. These libraries take SNI, authority and the name to verify from a URI, and
 * accept the server's address in no other way.
 */
public final class Hosts {
    private static final String FILE = "jdk.net.hosts.file";

    private Hosts() {
    }

    /** Must run before the platform first resolves an address, because it reads the file's place only once. */
    public static void prepare() {
        Security.setProperty("networkaddress.cache.ttl", "-1"); // looked up once, and kept
        System.setProperty(FILE, Path.of(System.getProperty("java.io.tmpdir"),
            "wirelab-hosts-" + ProcessHandle.current().pid()).toString());
    }

    public static void name(String name, InetAddress address) throws Failure {
        Path file = Path.of(System.getProperty(FILE));
        try {
            Files.writeString(file, address.getHostAddress() + " " + name + "\n");
            InetAddress found;
            try {
                found = InetAddress.getByName(name);
            } finally {
                Files.delete(file);
            }
            if (!found.equals(address)) {
                throw new Failure(ErrorKind.OTHER, "the name " + name + " stands for " + found + ", not " + address);
            }
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "giving " + address + " the name " + name + ": " + error);
        }
    }
}
