package wirelab.client;

import java.util.Map;
import wirelab.contract.Failure;

/** A library's part of a client: it makes connections. */
public interface Transport {
    /**
     * A connection that is not connected yet. Work that a program does once, not for every connection, belongs here: it is
     * done before a request starts.
     */
    Connection prepare() throws Failure;

    /** The active settings known so far. */
    Map<String, Object> configured();

    /** Session tickets in store; a library that does not report them always has as many as asked for. */
    default int tickets() {
        return Integer.MAX_VALUE;
    }

    /** The end of the warm-up: reports on the transport count from here. */
    default void begin() {
    }

    /** The transport's counts of the connections since then, by the names of the contract; null: nothing. */
    default Map<String, Long> report() {
        return null;
    }
}
