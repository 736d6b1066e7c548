package wirelab.client;

import wirelab.contract.Handshake;

/** One connection of a library. Its methods return at once; what comes of them is told to `Opening` and `Exchange`. */
public interface Connection {
    /** Connects. */
    void open(Opening opening);

    /** Sends the request of the spec; the first byte is handed over now. */
    void send(Exchange exchange);

    /** Whether it can carry another request. */
    boolean isOpen();

    /** How it began, as the library proves it; null without TLS. */
    Handshake handshake();

    /** Closes it, after a brief wait for a ticket where tickets are wanted, and calls `then`, once. */
    void close(Runnable then);

    /** Gives up a request whose deadline passed, on a connection that carries others. */
    default void cancel(Exchange exchange) {
    }

    /** Whether the library connects only when there is a request to send: `open` does nothing then. */
    default boolean opensWithRequest() {
        return false;
    }
}
