package wirelab.jetty;

import java.io.IOException;
import java.nio.channels.ServerSocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.http2.server.AbstractHTTP2ServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2CServerConnectionFactory;
import org.eclipse.jetty.http2.server.HTTP2ServerConnectionFactory;
import org.eclipse.jetty.server.ConnectionFactory;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.HttpConnectionFactory;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import org.eclipse.jetty.server.SslConnectionFactory;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Protocol;
import wirelab.contract.ServerSpec;
import wirelab.contract.Unsupported;
import wirelab.net.Pem;
import wirelab.net.TcpSettings;
import wirelab.server.Running;
import wirelab.server.Site;

/** Jetty's server of HTTP/1.1 and HTTP/2. */
final class JettyServer implements Running {
    /** JSSE gives no tickets where sessions would live longer than a ticket may, a week (RFC 8446, section 4.6.1). */
    private static final int LONGER_THAN_TICKETS_S = 604_801;

    private final Server server;
    private final ServerConnector connector;
    private final Map<String, Object> configured = new ConcurrentHashMap<>();

    JettyServer(ServerSpec spec, Site site) throws Failure {
        if (spec.earlyData) {
            throw new Unsupported("tls: `early_data` = true: the TLS of the JDK has no 0-RTT");
        }
        TcpSettings settings = new TcpSettings(spec.transport);
        HttpConfiguration http = new HttpConfiguration();
        // What leads outside is answered with 404 by the handler, as every path that is not there.
        http.setUriCompliance(UriCompliance.UNSAFE);
        http.setIdleTimeout(-1);
        List<ConnectionFactory> factories = new ArrayList<>();
        if (spec.protocol.isSecure()) {
            ALPNServerConnectionFactory alpn = new ALPNServerConnectionFactory(spec.protocol.alpn);
            factories.add(new SslConnectionFactory(tls(spec), alpn.getProtocol()));
            factories.add(alpn);
        }
        factories.add(protocol(spec.protocol, http, spec.transport));
        server = new Server(new QueuedThreadPool());
        connector = new ServerConnector(server, factories.toArray(ConnectionFactory[]::new)) {
            @Override
            protected ServerSocketChannel openAcceptChannel() throws IOException {
                ServerSocketChannel channel = super.openAcceptChannel();
                settings.apply(channel);
                configured.putAll(settings.configured(channel));
                return channel;
            }
        };
        connector.setHost(spec.address.getHostAddress());
        connector.setPort(spec.port);
        connector.setAcceptQueueSize(1024);
        connector.setAcceptedTcpNoDelay(settings.noDelay());
        connector.setIdleTimeout(0); // connections that rest are kept
        server.addConnector(connector);
        server.setHandler(new SiteHandler(site));
        server.setErrorHandler(new NotFound());
        server.setStopTimeout(0);
        start(spec);
    }

    private void start(ServerSpec spec) throws Failure {
        try {
            server.start();
            configured.put("threads", ((QueuedThreadPool) server.getThreadPool()).getMaxThreads());
        } catch (Unsupported reason) {
            throw reason;
        } catch (Exception error) {
            for (Throwable cause = error; cause != null; cause = cause.getCause()) {
                if (cause instanceof Unsupported reason) {
                    throw reason;
                }
            }
            throw new Failure(ErrorKind.OTHER, "binding " + spec.address + " port " + spec.port + ": " + error.getMessage());
        }
    }

    private ConnectionFactory protocol(Protocol protocol, HttpConfiguration http, Fields transport) {
        if (protocol == Protocol.H1 || protocol == Protocol.H1C) {
            return new HttpConnectionFactory(http);
        }
        AbstractHTTP2ServerConnectionFactory factory = protocol == Protocol.H2
            ? new HTTP2ServerConnectionFactory(http) : new HTTP2CServerConnectionFactory(http);
        if (transport.has("stream_window")) {
            factory.setInitialStreamRecvWindow(window(transport, "stream_window"));
        }
        if (transport.has("connection_window")) {
            factory.setInitialSessionRecvWindow(window(transport, "connection_window"));
        }
        configured.put("stream_window", factory.getInitialStreamRecvWindow());
        configured.put("connection_window", factory.getInitialSessionRecvWindow());
        return factory;
    }

    static int window(Fields transport, String name) {
        long value = transport.count(name, 1);
        // HTTP/2 begins a connection with 65535 bytes and has no way to take any back (RFC 9113, section 6.9.2).
        if (value > Integer.MAX_VALUE || name.equals("connection_window") && value < 65_535) {
            throw new Unsupported("transport: `" + name + "` = " + value + " cannot be had in HTTP/2");
        }
        return (int) value;
    }

    private static SslContextFactory.Server tls(ServerSpec spec) throws Failure {
        SslContextFactory.Server tls = new SslContextFactory.Server();
        tls.setKeyStore(Pem.identity(spec.certificate, spec.key));
        tls.setKeyStorePassword(Pem.PASSWORD);
        tls.setIncludeProtocols("TLSv1.3");
        tls.setSniRequired(false);
        if (!spec.resumption) {
            tls.setSslSessionTimeout(LONGER_THAN_TICKETS_S);
        }
        return tls;
    }

    @Override
    public int port() {
        return connector.getLocalPort();
    }

    @Override
    public Map<String, Object> configured() {
        return configured;
    }

    @Override
    public void stop() {
        try {
            server.stop();
        } catch (Exception error) {
            System.err.println("stopping Jetty: " + error);
        }
    }
}
