package wirelab.jetty;

import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.util.concurrent.TimeoutException;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.Response;
import org.eclipse.jetty.client.Result;
import org.eclipse.jetty.util.Promise;
import wirelab.client.Connection;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;
import wirelab.net.Causes;

/** A connection of Jetty's client, outside of its pool. */
abstract class JettyConnection implements Connection {
    /** The connection that connects in this thread, or begins TLS. */
    static final ThreadLocal<JettyConnection> OPENING = new ThreadLocal<>();

    volatile org.eclipse.jetty.client.Connection connection;
    volatile SelectableChannel socket;
    volatile Opening opening;
    volatile Handshake handshake;
    volatile boolean closed;
    private final JettyTransport transport;

    JettyConnection(JettyTransport transport) {
        this.transport = transport;
    }

    /** Jetty has the connection, and it is still open. */
    abstract void made(Opening begun);

    /** Jetty's failures, as the contract's error kinds. */
    Failure failure(String attempt, Throwable error) {
        return Causes.failure(attempt, error);
    }

    @Override
    public final void open(Opening begun) {
        opening = begun;
        OPENING.set(this);
        try {
            transport.destination().newConnection(new Promise<>() {
                @Override
                public void succeeded(org.eclipse.jetty.client.Connection opened) {
                    connection = opened;
                    if (closed) {
                        opened.close();
                    } else {
                        made(begun);
                    }
                }

                @Override
                public void failed(Throwable error) {
                    begun.failed(failure("connecting to " + transport.spec.address + " port " + transport.spec.port, error));
                }
            });
        } finally {
            OPENING.remove();
        }
    }

    @Override
    public final void send(Exchange exchange) {
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
                    exchange.fail(failure(transport.spec.method + " " + transport.spec.path, result.getFailure()));
                }
            }
        });
        connection.send(request, null);
    }

    @Override
    public final void cancel(Exchange exchange) {
        ((Request) exchange.attachment).abort(new TimeoutException("the deadline of the spec passed"));
    }

    @Override
    public final boolean isOpen() {
        return !closed && connection != null && !connection.isClosed();
    }

    @Override
    public final Handshake handshake() {
        return handshake;
    }
}
