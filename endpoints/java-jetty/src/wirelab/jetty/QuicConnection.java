package wirelab.jetty;

import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import org.eclipse.jetty.quic.api.frames.ConnectionCloseFrame;
import org.eclipse.jetty.quic.quiche.QuicheSession;
import org.eclipse.jetty.util.Promise;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;

/** A connection of HTTP/3. */
final class QuicConnection extends JettyConnection {
    /** H3_NO_ERROR (RFC 9114, section 8.1). */
    private static final long NO_ERROR = 0x100;

    private final QuicTransport transport;
    private volatile QuicheSession session;
    private volatile long ready = Exchange.NEVER;

    QuicConnection(QuicTransport transport) {
        super(transport);
        this.transport = transport;
    }

    /** quiche is done with the handshake. It was a full one: Jetty has no call that would give quiche a ticket. */
    void handshaken(QuicheSession made, long at) {
        session = made;
        ready = at;
        handshake = Handshake.FULL;
        String negotiated = made.getNegotiatedProtocol();
        if (transport.spec.protocol.alpn.equals(negotiated)) {
            transport.configured.put("alpn", negotiated);
        } else {
            opening.failed(ErrorKind.PROTOCOL, "the server negotiated `" + negotiated + "`");
        }
    }

    @Override
    void made(Opening begun) {
        begun.opened(ready);
    }

    @Override
    Failure failure(String attempt, Throwable error) {
        return QuicFaults.of(attempt, error);
    }

    /** With CONNECTION_CLOSE at once: Jetty would send GOAWAY alone, and wait for the server's. */
    @Override
    public void close(Runnable then) {
        closed = true;
        if (connection != null) {
            connection.close();
        }
        if (session != null) {
            session.disconnect(new ConnectionCloseFrame(NO_ERROR, ""), new ClosedChannelException(), Promise.Invocable.noop());
        } else if (socket != null) {
            try {
                socket.close();
            } catch (IOException error) {
                // It is closed in any case.
            }
        }
        then.run();
    }
}
