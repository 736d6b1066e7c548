package wirelab.server;

import java.util.Map;

/** A server that accepts connections. */
public interface Running {
    int port();

    /** What is in force. */
    Map<String, Object> configured();

    /** What the transport knows of all connections, by the names of the contract; null: nothing. */
    default Map<String, Long> report() {
        return null;
    }

    /** Ends it at once, whatever is still open. */
    void stop();
}
