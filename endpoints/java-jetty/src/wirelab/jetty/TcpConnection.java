package wirelab.jetty;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import java.util.concurrent.TimeUnit;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import org.eclipse.jetty.io.ssl.SslConnection;
import org.eclipse.jetty.util.BufferUtil;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.net.Tickets;
import wirelab.net.TlsFacts;

/** A connection over TCP, with TLS or without. */
final class TcpConnection extends JettyConnection {
    /** The interval and the number of checks for the ticket. */
    private static final long TICKET_WAIT_MS = 1;
    private static final int TICKET_WAITS = 20;

    private final TcpTransport transport;
    private final Tickets.Slot slot;
    private volatile long ready = Exchange.NEVER;
    private volatile SslConnection tls;

    TcpConnection(TcpTransport transport) throws Failure {
        super(transport);
        this.transport = transport;
        this.slot = transport.tickets == null ? null : transport.tickets.borrow();
    }

    Tickets.Slot slot() {
        return slot;
    }

    @Override
    void made(Opening begun) {
        if (slot == null) {
            begun.opened(System.nanoTime());
        } else if (handshake != null) {
            begun.opened(ready);
        } else {
            beginHandshake();
        }
    }

    /** With HTTP/1.1 Jetty leaves the handshake to the first request: an empty write begins it. */
    private void beginHandshake() {
        try {
            tls.getSslEndPoint().flush(BufferUtil.EMPTY_BUFFER);
        } catch (IOException error) {
            handshakeFailed(error);
        }
    }

    void tls(SslConnection made) {
        tls = made;
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
            transport.client().getExecutor().execute(() -> opening.opened(at));
        }
        if (!transport.configured.containsKey("cipher")) {
            TlsFacts.add(transport.configured, engine.getSession(), negotiated);
        }
    }

    void handshakeFailed(Throwable error) {
        opening.failed(failure("the TLS handshake with " + transport.spec.address, error));
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
            transport.client().getScheduler().schedule(
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
                // It is closed in any case.
            }
        }
        if (socket != null) {
            transport.connector.forget(socket);
        }
        then.run();
    }
}
