package wirelab.client;

import wirelab.contract.Handshake;

/** One connection of a library. Its methods return at once; `Opening` and `Exchange` get the results. */
public interface Connection {
    /** Connects. */
    void open(Opening opening);

    /** Sends the request of the spec; hands the first byte over now. */
    void send(Exchange exchange);

    /** Whether it can carry another request. */
    boolean isOpen();

    /** How it began, as the library proves it; null without TLS. */
    Handshake handshake();

    /** Closes it and calls `then`, once. If tickets are wanted, it first waits briefly for one. */
    void close(Runnable then);

    /** Gives up a request whose deadline passed, on a connection that carries others. */
    default void cancel(Exchange exchange) {
    }

    /** Whether the library connects only with a request to send: `open` does nothing then. */
    default boolean opensWithRequest() {
        return false;
    }
}
