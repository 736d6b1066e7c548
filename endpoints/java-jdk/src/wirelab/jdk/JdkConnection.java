package wirelab.jdk;

import java.io.EOFException;
import java.io.IOException;
import java.net.http.HttpClient;
import java.nio.channels.SocketChannel;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLEngine;
import wirelab.client.Connection;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;
import wirelab.net.Causes;
import wirelab.net.CountedBody;
import wirelab.net.Tickets;
import wirelab.net.TlsFacts;

/**
 * A connection is an HttpClient of its own: this is the only way to choose the connection of a request, and the moment
 * when a connection closes. It connects with the first request.
 */
final class JdkConnection implements Connection, Executor {
    /** The interval and the number of checks for the ticket. */
    private static final long TICKET_WAIT_NS = 1_000_000;
    private static final int TICKET_WAITS = 20;

    private final JdkTransport transport;
    private final Tickets.Slot slot;
    private volatile HttpClient client;
    /** The thread in which the client waits for its sockets. */
    private volatile Thread selector;
    private volatile SocketChannel channel;
    private volatile long connected = Exchange.NEVER;
    /** The request that opens the connection. */
    private volatile Exchange opener;
    private volatile boolean closed;
    private volatile Handshake handshake;

    JdkConnection(JdkTransport transport) throws Failure {
        this.transport = transport;
        this.slot = transport.tickets == null ? null : transport.tickets.borrow();
        HttpClient.Builder builder = HttpClient.newBuilder().version(transport.version)
            .followRedirects(HttpClient.Redirect.NEVER).executor(this);
        if (slot != null) {
            builder.sslContext(new ObservedContext(slot.context(), this));
        }
        client = builder.build();
    }

    String alpn() {
        return transport.spec.protocol.alpn;
    }

    @Override
    public boolean opensWithRequest() {
        return true;
    }

    @Override
    public void open(Opening opening) {
        throw new IllegalStateException("HttpClient connects when it has a request");
    }

    @Override
    public void send(Exchange exchange) {
        if (opener == null) {
            opener = exchange;
        }
        HttpClient sender = client;
        if (sender == null) {
            exchange.fail(ErrorKind.RESET, "the connection was closed before the request was sent");
            return;
        }
        sender.sendAsync(transport.request, head -> {
            exchange.firstByte(System.nanoTime());
            exchange.status(head.statusCode());
            return new CountedBody(exchange);
        }).whenComplete((response, error) -> {
            if (error == null) {
                exchange.complete(response.body());
            } else {
                fail(exchange, error instanceof CompletionException && error.getCause() != null ? error.getCause() : error);
            }
        });
    }

    private void fail(Exchange exchange, Throwable error) {
        if (transport.spec.protocol != wirelab.contract.Protocol.H2 || !isOpen()) {
            closed = true;
        }
        exchange.fail(Causes.failure(transport.spec.method + " " + transport.spec.path, error));
    }

    /** A task of the client. Its first actions, before a socket exists, are watched. */
    @Override
    public void execute(Runnable task) {
        if (connected != Exchange.NEVER) {
            transport.threads.execute(task);
            return;
        }
        // The first task after the socket is connected comes from the thread that saw it.
        Thread current = Thread.currentThread();
        if (selector == null && current.getName().endsWith("SelectorManager")) {
            selector = current;
        }
        SocketChannel socket = channel;
        if (socket != null && socket.isConnected()) {
            connected();
        }
        transport.threads.execute(() -> {
            Channels.OPENING.set(this);
            try {
                task.run();
            } finally {
                Channels.OPENING.remove();
            }
        });
    }

    private void connected() {
        connected = System.nanoTime();
        Exchange first = opener;
        if (first != null) {
            first.connected(connected, slot == null);
        }
        transport.readBack(channel);
    }

    /** The client opens a socket. A second one would be another connection, and only the engine may decide that. */
    void socket(SocketChannel opened) throws IOException {
        if (channel != null) {
            opened.close();
            throw new EOFException("the connection ended, and HttpClient would open another one");
        }
        transport.settings.apply(opened);
        channel = opened;
    }

    /** Its TLS handshake is over. */
    void handshaken(SSLEngine engine, long at) throws javax.net.ssl.SSLException {
        if (connected == Exchange.NEVER) {
            connected();
        }
        if (handshake != null) {
            return; // a ticket that comes later is a handshake message, too
        }
        handshake = slot.proven();
        Exchange first = opener;
        if (!alpn().equals(engine.getApplicationProtocol())) {
            closed = true;
            first.fail(ErrorKind.PROTOCOL,
                "the server negotiated `" + engine.getApplicationProtocol() + "`, not `" + alpn() + "`");
            throw new javax.net.ssl.SSLException("another protocol was negotiated");
        }
        first.ready(at, handshake);
        if (!transport.configured.containsKey("cipher")) {
            TlsFacts.add(transport.configured, engine.getSession(), engine.getApplicationProtocol());
        }
    }

    @Override
    public boolean isOpen() {
        SocketChannel socket = channel;
        return !closed && (socket == null || socket.isOpen());
    }

    @Override
    public Handshake handshake() {
        return handshake;
    }

    @Override
    public void close(Runnable then) {
        if (transport.tickets != null && transport.tickets.areWanted() && handshake != null && !closed) {
            awaitTicket(TICKET_WAITS, then);
        } else {
            end(then);
        }
    }

    private void awaitTicket(int waits, Runnable then) {
        if (waits > 0 && !slot.hasTicket()) {
            transport.timer.schedule(() -> awaitTicket(waits - 1, then), TICKET_WAIT_NS, TimeUnit.NANOSECONDS);
            return;
        }
        transport.tickets.giveBack(slot);
        end(then);
    }

    /** HttpClient of JDK 17 has no `close`; an interrupt of its thread ends it and closes its sockets. */
    private void end(Runnable then) {
        closed = true;
        client = null;
        Thread thread = selector;
        if (thread != null) {
            thread.interrupt();
        }
        SocketChannel socket = channel;
        if (socket != null) {
            try {
                socket.close();
            } catch (IOException error) {
                // It is closed in any case.
            }
        }
        then.run();
    }
}
