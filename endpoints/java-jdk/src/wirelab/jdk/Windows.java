package wirelab.jdk;

import java.util.Map;
import wirelab.contract.Fields;
import wirelab.contract.Unsupported;

/** Flow-control credit of HTTP/2, which HttpClient takes from system properties. */
final class Windows {
    /** It silently replaces smaller or larger values by its defaults. */
    private static final long LEAST = 1 << 14;
    private static final long LEAST_CONNECTION = (1 << 16) - 1;
    private static final long MOST = Integer.MAX_VALUE;
    private static final long DEFAULT_STREAM = 16 << 20;
    private static final long DEFAULT_CONNECTION = 32 << 20;

    private Windows() {
    }

    static void take(Fields transport, Map<String, Object> configured) {
        long stream = DEFAULT_STREAM;
        if (transport.has("stream_window")) {
            stream = transport.count("stream_window", 1);
            demand("stream_window", stream, LEAST);
            System.setProperty("jdk.httpclient.windowsize", Long.toString(stream));
        }
        long connection = Math.max(DEFAULT_CONNECTION, stream);
        if (transport.has("connection_window")) {
            connection = transport.count("connection_window", 1);
            demand("connection_window", connection, Math.max(LEAST_CONNECTION, stream));
            System.setProperty("jdk.httpclient.connectionWindowSize", Long.toString(connection));
        }
        configured.put("stream_window", stream);
        configured.put("connection_window", connection);
    }

    private static void demand(String name, long value, long least) {
        if (value < least || value > MOST) {
            throw new Unsupported("transport: `" + name + "` = " + value + "; supported: " + least + " to " + MOST);
        }
    }
}
