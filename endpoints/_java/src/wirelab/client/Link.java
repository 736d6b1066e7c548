package wirelab.client;

import java.util.ArrayDeque;
import wirelab.contract.Failure;

/** One connection that may break and be replaced, shared by the lanes that have a stream of it. */
final class Link {
    private final Engine engine;
    private final ArrayDeque<Exchange> waiting = new ArrayDeque<>();
    private Connection current;
    private int number;
    private Opening opening;
    private Exchange opener;
    private Connection unopened;

    Link(Engine engine) {
        this.engine = engine;
    }

    synchronized boolean wantsConnection() {
        return opening == null && (current == null || !current.isOpen());
    }

    /**
     * Sends the request as soon as a connection exists. If none exists, it opens one: `fresh`, if that was
     * prepared. While one lane opens it, the others wait.
     */
    void send(Exchange exchange, Connection fresh) {
        Connection ready = null;
        Opening begun = null;
        boolean unprepared = false;
        synchronized (this) {
            if (current != null && current.isOpen()) {
                ready = current;
                exchange.connection = number;
            } else if (opening != null) {
                waiting.add(exchange);
            } else if (fresh == null) {
                unprepared = true;
            } else if (fresh.opensWithRequest()) {
                ready = fresh;
                adopt(exchange, fresh);
                exchange.connecting = true;
            } else {
                begun = begin(exchange, fresh);
            }
        }
        if (unprepared) {
            prepareAndSend(exchange);
        } else if (begun != null) {
            fresh.open(begun);
        } else {
            if (fresh != null && fresh != ready) {
                exchange.connecting = false;
                fresh.close(() -> { }); // another lane was faster
            }
            if (ready != null) {
                hand(exchange, ready);
            }
        }
    }

    private void prepareAndSend(Exchange exchange) {
        try {
            Connection fresh = engine.transport.prepare();
            exchange.connecting = true;
            send(exchange, fresh);
        } catch (Failure failure) {
            exchange.fail(failure);
        }
    }

    private void hand(Exchange exchange, Connection connection) {
        if (exchange.onlyConnects && !connection.opensWithRequest()) {
            exchange.complete(System.nanoTime());
            return;
        }
        exchange.bytesOut = engine.spec.bodySize;
        connection.send(exchange);
    }

    private void adopt(Exchange exchange, Connection connection) {
        current = connection;
        number = engine.nextNumber();
        exchange.connection = number;
        exchange.opened = true;
    }

    private Opening begin(Exchange exchange, Connection connection) {
        exchange.opened = true;
        exchange.connecting = true;
        opener = exchange;
        unopened = connection;
        opening = new Opening() {
            @Override
            void succeeded(long connected, long ready) {
                exchange.connected = connected;
                exchange.ready = engine.spec.protocol.isSecure() ? ready : Exchange.NEVER;
                exchange.handshake = connection.handshake();
                exchange.connecting = false;
                synchronized (Link.this) {
                    adopt(exchange, connection);
                    opening = null;
                    opener = null;
                }
                hand(exchange, connection);
                sendWaiting();
            }

            @Override
            void ended(Failure failure) {
                connection.close(() -> { });
                synchronized (Link.this) {
                    opening = null;
                    opener = null;
                }
                exchange.fail(failure);
                sendWaiting();
            }
        };
        return opening;
    }

    /** Serves the waiting lanes: on the existing connection, or the first of them tries to open another one. */
    private void sendWaiting() {
        while (true) {
            Exchange next;
            synchronized (this) {
                next = opening == null ? waiting.poll() : null;
            }
            if (next == null) {
                return;
            }
            if (!next.isSettled()) {
                send(next, null);
            }
        }
    }

    /** The deadline of a request passed: undoes the work for this request alone. */
    void giveUp(Exchange exchange, boolean keepsConnection) {
        Opening abandoned = null;
        Connection broken = null;
        synchronized (this) {
            waiting.remove(exchange);
            if (opener == exchange) {
                abandoned = opening;
                opening = null;
                opener = null;
                broken = unopened;
            } else if (current != null && number == exchange.connection) {
                if (keepsConnection && current.isOpen() && !exchange.connecting) {
                    current.cancel(exchange);
                } else {
                    broken = current;
                    current = null;
                }
            }
        }
        if (abandoned != null) {
            abandoned.abandon();
        }
        if (broken != null) {
            broken.close(() -> { });
        }
        sendWaiting();
    }

    /** After a request failed on it: keeps the connection only if other requests can use it. */
    void failed(Exchange exchange, boolean keepsConnection) {
        Connection broken = null;
        synchronized (this) {
            if (current != null && number == exchange.connection && !(keepsConnection && current.isOpen())) {
                broken = current;
                current = null;
            }
        }
        if (broken != null) {
            broken.close(() -> { });
        }
    }

    /** Closes the connection, if there is one, and calls `then`. */
    void close(Runnable then) {
        Connection last;
        synchronized (this) {
            last = current;
            current = null;
        }
        if (last == null) {
            then.run();
        } else {
            last.close(then);
        }
    }
}
