package wirelab.client;

import java.util.Map;
import wirelab.contract.Failure;

/** What a library does for a client: it makes connections. */
public interface Transport {
    /**
     * A connection that is not connected yet. What a program does once and not for every connection belongs here: it is
     * done before a request starts.
     */
    Connection prepare() throws Failure;

    /** What is in force, as far as it is known by now. */
    Map<String, Object> configured();

    /** Session tickets in store; a library that does not tell has always as many as are asked for. */
    default int tickets() {
        return Integer.MAX_VALUE;
    }

    /** The end of the warm-up: reports on the transport count from here. */
    default void begin() {
    }

    /** What the transport knows of the connections since then, by the names of the contract; null: nothing. */
    default Map<String, Long> report() {
        return null;
    }
}
