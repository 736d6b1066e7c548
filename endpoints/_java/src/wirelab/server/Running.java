package wirelab.server;

import java.util.Map;

/** A server that accepts connections. */
public interface Running {
    int port();

    /** The active settings. */
    Map<String, Object> configured();

    /** The transport's counts of all connections, by the names of the contract; null: nothing. */
    default Map<String, Long> report() {
        return null;
    }

    /** Ends it at once, with all open connections. */
    void stop();
}
