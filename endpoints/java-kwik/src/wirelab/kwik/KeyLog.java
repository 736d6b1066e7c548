package wirelab.kwik;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.atomic.AtomicInteger;

/** The key log of all connections. kwik removes its file at each new connection, so each connection first has its own file. */
final class KeyLog {
    private final Path log;
    private final AtomicInteger connections = new AtomicInteger();

    KeyLog(Path log) {
        this.log = log;
    }

    /** Where the secrets of the next connection go. */
    Path next() {
        return log.resolveSibling(log.getFileName() + "." + connections.getAndIncrement());
    }

    /** Moves them to the end of the log: kwik has written all of them when the handshake is over. */
    synchronized void take(Path secrets) throws IOException {
        if (Files.exists(secrets)) {
            Files.write(log, Files.readAllBytes(secrets), StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            Files.delete(secrets);
        }
    }
}
