package wirelab.jetty;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.client.Result;
import org.eclipse.jetty.io.ssl.SslConnection;
import org.eclipse.jetty.util.BufferUtil;
import org.eclipse.jetty.util.Promise;
import wirelab.client.Connection;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;
import wirelab.net.Causes;
import wirelab.net.Tickets;
import wirelab.net.TlsFacts;

/** A connection of Jetty's client, outside of its pool. */
final class JettyConnection implements Connection {
    /** How often, and how many times, it is looked whether the ticket has come. */
    private static final long TICKET_WAIT_MS = 1;
    private static final int TICKET_WAITS = 20;

    private final JettyTransport transport;
    private final Tickets.Slot slot;
    private volatile org.eclipse.jetty.client.Connection connection;
    private volatile SelectableChannel socket;
    private volatile Opening opening;
    private volatile Handshake handshake;
    private volatile long ready = Exchange.NEVER;
    private volatile boolean closed;
    private volatile SslConnection tls;

    JettyConnection(JettyTransport transport) throws Failure {
        this.transport = transport;
        this.slot = transport.tickets == null ? null : transport.tickets.borrow();
    }

    Tickets.Slot slot() {
        return slot;
    }

    @Override
    public void open(Opening begun) {
        opening = begun;
        ObservedConnector.OPENING.set(this);
        try {
            transport.destination.newConnection(new Promise<>() {
                @Override
                public void succeeded(org.eclipse.jetty.client.Connection made) {
                    connection = made;
                    if (closed) {
                        made.close();
                    } else if (slot == null) {
                        begun.opened(System.nanoTime());
                    } else if (handshake != null) {
                        begun.opened(ready);
                    } else {
                        beginHandshake();
                    }
                }

                @Override
                public void failed(Throwable error) {
                    begun.failed(Causes.failure("connecting to " + transport.spec.address + " port "
                        + transport.spec.port, error));
                }
            });
        } finally {
            ObservedConnector.OPENING.remove();
        }
    }

    /** With HTTP/1.1 Jetty leaves the handshake to the first request: an empty write begins it. */
    private void beginHandshake() {
        try {
            tls.getSslEndPoint().flush(BufferUtil.EMPTY_BUFFER);
        } catch (IOException error) {
            opening.failed(Causes.failure("the TLS handshake with " + transport.spec.address, error));
        }
    }

    void tls(SslConnection connection) {
        tls = connection;
    }

    void socket(SelectableChannel opened) {
        socket = opened;
    }

    void connected(SocketChannel channel, long at) {
        opening.connected(at);
        transport.readBack(channel);
    }

    void handshaken(SSLEngine engine, long at) throws SSLException {
        String negotiated = engine.getApplicationProtocol();
        if (!transport.spec.protocol.alpn.equals(negotiated)) {
            opening.failed(ErrorKind.PROTOCOL, "the server negotiated `" + negotiated + "`");
            throw new SSLException("another protocol was negotiated");
        }
        ready = at;
        handshake = slot.proven();
        if (connection != null) { // not from here, where Jetty is in the midst of reading
            transport.client.getExecutor().execute(() -> opening.opened(at));
        }
        if (!transport.configured.containsKey("cipher")) {
            TlsFacts.add(transport.configured, engine.getSession(), negotiated);
        }
    }

    void handshakeFailed(Throwable error) {
        opening.failed(Causes.failure("the TLS handshake with " + transport.spec.address, error));
    }

    @Override
    public void send(Exchange exchange) {
        Request request = transport.newRequest();
        exchange.attachment = request;
        request.onResponseListener(new Response.Listener() {
            private long last = Exchange.NEVER;

            @Override
            public void onBegin(Response response) {
                exchange.firstByte(System.nanoTime());
                exchange.status(response.getStatus());
            }

            @Override
            public void onContent(Response response, ByteBuffer piece) {
                exchange.body(piece);
            }

            @Override
            public void onSuccess(Response response) {
                last = System.nanoTime();
            }

            @Override
            public void onComplete(Result result) {
                if (result.isSucceeded()) {
                    exchange.complete(last);
                } else {
                    failed(exchange, result.getFailure());
                }
            }
        });
        connection.send(request, null);
    }

    private void failed(Exchange exchange, Throwable error) {
        exchange.fail(Causes.failure(transport.spec.method + " " + transport.spec.path, error));
    }

    @Override
    public void cancel(Exchange exchange) {
        ((Request) exchange.attachment).abort(new TimeoutException("the deadline of the spec passed"));
    }

    @Override
    public boolean isOpen() {
        return !closed && !connection.isClosed();
    }

    @Override
    public Handshake handshake() {
        return handshake;
    }

    @Override
    public void close(Runnable then) {
        if (transport.tickets != null && transport.tickets.areWanted() && handshake != null && isOpen()) {
            awaitTicket(TICKET_WAITS, then);
        } else {
            end(then);
        }
    }

    private void awaitTicket(int waits, Runnable then) {
        if (waits > 0 && !slot.hasTicket()) {
            transport.client.getScheduler().schedule(
                () -> awaitTicket(waits - 1, then), TICKET_WAIT_MS, TimeUnit.MILLISECONDS);
            return;
        }
        transport.tickets.giveBack(slot);
        end(then);
    }

    private void end(Runnable then) {
        closed = true;
        if (connection != null) {
            connection.close();
        } else if (socket != null) {
            try {
                socket.close();
            } catch (IOException error) {
                // It is closed all the same.
            }
        }
        if (socket != null) {
            transport.connector.forget(socket);
        }
        then.run();
    }
}
