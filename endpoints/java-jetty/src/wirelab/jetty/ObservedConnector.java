package wirelab.jetty;

import java.io.IOException;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import org.eclipse.jetty.io.ClientConnectionFactory;
import org.eclipse.jetty.io.ClientConnector;
import org.eclipse.jetty.io.Connection;
import org.eclipse.jetty.io.EndPoint;
import org.eclipse.jetty.io.SocketChannelEndPoint;
import org.eclipse.jetty.io.ssl.SslClientConnectionFactory;
import org.eclipse.jetty.io.ssl.SslConnection;
import org.eclipse.jetty.io.ssl.SslHandshakeListener;
import org.eclipse.jetty.util.ssl.SslContextFactory;

/** Opens Jetty's sockets, and reports to each connection that it is connected and that its handshake is over. */
final class ObservedConnector extends ClientConnector {
    private final TcpTransport transport;
    private final Map<SelectableChannel, TcpConnection> sockets = new ConcurrentHashMap<>();

    ObservedConnector(TcpTransport transport) {
        this.transport = transport;
        setSslContextFactory(new Engines());
        addEventListener(new ConnectListener() {
            @Override
            public void onConnectSuccess(SocketChannel socket) {
                long now = System.nanoTime();
                TcpConnection connection = sockets.get(socket);
                if (connection != null) {
                    connection.connected(socket, now);
                }
            }
        });
    }

    void forget(SelectableChannel socket) {
        sockets.remove(socket);
    }

    private static TcpConnection opening() {
        return (TcpConnection) JettyConnection.OPENING.get();
    }

    @Override
    protected void configure(SelectableChannel socket) throws IOException {
        super.configure(socket);
        transport.settings.apply(socket);
        TcpConnection connection = opening();
        if (connection != null) {
            sockets.put(socket, connection);
            connection.socket = socket;
        }
    }

    @Override
    public ClientConnectionFactory newSslClientConnectionFactory(
        SslContextFactory.Client tls, ClientConnectionFactory inner) {
        SslContextFactory.Client own = tls == null ? getSslContextFactory() : tls;
        return new ObservedTls(own, getExecutor(), inner);
    }

    private final class ObservedTls extends SslClientConnectionFactory {
        ObservedTls(SslContextFactory.Client tls, Executor executor, ClientConnectionFactory inner) {
            super(tls, ObservedConnector.this.getByteBufferPool(), executor, inner);
        }

        @Override
        public Connection newConnection(EndPoint endPoint, Map<String, Object> context) throws IOException {
            JettyConnection.OPENING.set(sockets.get(((SocketChannelEndPoint) endPoint).getChannel()));
            try {
                return super.newConnection(endPoint, context);
            } finally {
                JettyConnection.OPENING.remove();
            }
        }

        @Override
        protected SslConnection newSslConnection(EndPoint endPoint, SSLEngine engine) {
            SslConnection connection = super.newSslConnection(endPoint, engine);
            TcpConnection ours = opening();
            ours.tls(connection);
            connection.addHandshakeListener(new SslHandshakeListener() {
                @Override
                public void handshakeSucceeded(Event event) throws SSLException {
                    ours.handshaken(event.getSSLEngine(), System.nanoTime());
                }

                @Override
                public void handshakeFailed(Event event, Throwable failure) {
                    ours.handshakeFailed(failure);
                }
            });
            return connection;
        }
    }

    /** Makes engines from the TLS context that the connection has borrowed. */
    private final class Engines extends SslContextFactory.Client {
        Engines() {
            super(true); // the trust is that of the borrowed context
            setEndpointIdentificationAlgorithm(transport.spec.verify ? "HTTPS" : null);
        }

        @Override
        public SSLEngine newSSLEngine(String host, int port) {
            SSLEngine engine = opening().slot().context().createSSLEngine(transport.spec.serverName, port);
            SSLParameters parameters = engine.getSSLParameters();
            parameters.setProtocols(new String[] {"TLSv1.3"});
            parameters.setApplicationProtocols(new String[] {transport.spec.protocol.alpn});
            parameters.setEndpointIdentificationAlgorithm(getEndpointIdentificationAlgorithm());
            engine.setSSLParameters(parameters);
            return engine;
        }
    }
}
