package wirelab.server;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Unsupported;

/**
 * The documents below the document root, read before the server is ready: the measurement is of the protocol, not a page
 * cache. Only paths that were seen below the root are known, so no path leads out of it.
 */
final class Documents {
    /** The most that is kept in memory: the heap has to hold it. */
    private static final long LARGEST_TOTAL = 128 << 20;

    private final Map<String, byte[]> files = new HashMap<>();

    Documents(Path root) throws Failure {
        try (Stream<Path> all = Files.walk(root.toRealPath())) {
            Path real = root.toRealPath();
            long total = 0;
            for (Path path : (Iterable<Path>) all.filter(Files::isRegularFile)::iterator) {
                if (!path.toRealPath().startsWith(real)) {
                    continue; // a link that leads outside
                }
                total += Files.size(path);
                if (total > LARGEST_TOTAL) {
                    throw new Unsupported("document_root: holds more than " + LARGEST_TOTAL
                        + " bytes, the most that this server keeps in memory");
                }
                files.put("/" + real.relativize(path), Files.readAllBytes(path));
            }
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "reading the document root " + root + ": " + error);
        }
    }

    /** The document at a path that begins with a slash; null: none. */
    byte[] get(String path) {
        return files.get(path);
    }
}
