package wirelab.jetty;

import java.io.IOException;
import java.net.SocketAddress;
import java.nio.channels.DatagramChannel;
import java.nio.channels.SelectableChannel;
import java.util.Map;
import org.eclipse.jetty.http3.client.HTTP3Client;
import org.eclipse.jetty.http3.client.HTTP3ClientQuicConfiguration;
import org.eclipse.jetty.http3.client.transport.HttpClientTransportOverHTTP3;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.quic.api.Session;
import org.eclipse.jetty.quic.common.ProtocolSession;
import org.eclipse.jetty.quic.quiche.PemPaths;
import org.eclipse.jetty.quic.quiche.QuicheSession;
import org.eclipse.jetty.quic.quiche.client.QuicheClientQuicConfiguration;
import org.eclipse.jetty.quic.quiche.client.QuicheTransport;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import wirelab.client.Connection;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Unsupported;

/** Jetty's client of HTTP/3, with quiche below. Each connection has a socket of its own. */
final class QuicTransport extends JettyTransport {
    private final QuicSettings settings;

    QuicTransport(ClientSpec spec) throws Failure {
        super(spec);
        if (!spec.resumption.equals("none")) {
            throw new Unsupported("spec: `resumption` = `" + spec.resumption + "`, with h3: Jetty keeps no ticket for quiche");
        }
        settings = new QuicSettings(spec.transport);
        QuicheClientQuicConfiguration quic = HTTP3ClientQuicConfiguration.configure(new Anchors());
        settings.apply(quic);
        try {
            configured.putAll(settings.probe(quic.getLocalBidirectionalStreamMaxData(), quic.getSessionMaxData()));
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making a socket: " + error.getMessage());
        }
        HTTP3Client http3 = new HTTP3Client(quic, new Sockets());
        http3.getHTTP3Configuration().setStreamIdleTimeout(0); // the engine has a deadline
        start(new ObservedHttp3(http3, new QuicheTransport(quic)));
    }

    @Override
    public Connection prepare() {
        return new QuicConnection(this);
    }

    private final class Sockets extends ClientConnector {
        Sockets() {
            setSslContextFactory(new SslContextFactory.Client(!spec.verify)); // quiche gets no more of it
        }

        @Override
        protected void configure(SelectableChannel socket) throws IOException {
            super.configure(socket);
            settings.apply(((DatagramChannel) socket).socket());
            JettyConnection.OPENING.get().socket = socket;
        }
    }

    /** quiche reads its trust anchors from the spec's file. Jetty would write a copy and remove it. */
    private final class Anchors extends QuicheClientQuicConfiguration {
        @Override
        public void configure(SslContextFactory.Client tls) {
            getImplementationConfiguration().put(tls, new PemPaths(null, null, spec.verify ? spec.trustAnchor : null));
        }

        @Override
        public void deconfigure(SslContextFactory.Client tls) {
            // The same for all connections.
        }
    }

    /** Reports the end of the handshake to a connection. Jetty itself waits for the server's settings too. */
    private static final class ObservedHttp3 extends HttpClientTransportOverHTTP3 {
        private static final String OURS = QuicConnection.class.getName();

        ObservedHttp3(HTTP3Client client, QuicheTransport quiche) {
            super(client, quiche);
        }

        @Override
        public void connect(SocketAddress address, Map<String, Object> context) {
            context.put(OURS, JettyConnection.OPENING.get());
            super.connect(address, context);
        }

        @Override
        public ProtocolSession newProtocolSession(Session session, Map<String, Object> context) {
            ((QuicConnection) context.get(OURS)).handshaken((QuicheSession) session, System.nanoTime());
            CarefulQuiche.opened((QuicheSession) session);
            return super.newProtocolSession(session, context);
        }
    }
}
