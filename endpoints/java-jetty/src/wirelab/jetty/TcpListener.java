package wirelab.jetty;

import java.io.IOException;
import java.nio.channels.ServerSocketChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.eclipse.jetty.alpn.server.ALPNServerConnectionFactory;
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
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Protocol;
import wirelab.contract.ServerSpec;
import wirelab.contract.Unsupported;
import wirelab.net.TcpSettings;

/** Jetty's connector of HTTP/1.1 and HTTP/2. */
final class TcpListener {
    /** JSSE gives no tickets where sessions would live longer than a ticket may, a week (RFC 8446, section 4.6.1). */
    private static final int LONGER_THAN_TICKETS_S = 604_801;

    private TcpListener() {
    }

    static ServerConnector connector(Server server, HttpConfiguration http, ServerSpec spec, Map<String, Object> configured)
        throws Failure {
        TcpSettings settings = new TcpSettings(spec.transport);
        List<ConnectionFactory> factories = new ArrayList<>();
        if (spec.protocol.isSecure()) {
            ALPNServerConnectionFactory alpn = new ALPNServerConnectionFactory(spec.protocol.alpn);
            factories.add(new SslConnectionFactory(tls(spec), alpn.getProtocol()));
            factories.add(alpn);
        }
        factories.add(protocol(spec, http, configured));
        ServerConnector connector = new ServerConnector(server, factories.toArray(ConnectionFactory[]::new)) {
            @Override
            protected ServerSocketChannel openAcceptChannel() throws IOException {
                ServerSocketChannel channel = super.openAcceptChannel();
                settings.apply(channel);
                configured.putAll(settings.configured(channel));
                return channel;
            }
        };
        connector.setAcceptQueueSize(1024);
        connector.setAcceptedTcpNoDelay(settings.noDelay());
        return connector;
    }

    private static ConnectionFactory protocol(ServerSpec spec, HttpConfiguration http, Map<String, Object> configured) {
        if (!spec.protocol.multiplexes()) {
            return new HttpConnectionFactory(http);
        }
        AbstractHTTP2ServerConnectionFactory factory = spec.protocol == Protocol.H2
            ? new HTTP2ServerConnectionFactory(http) : new HTTP2CServerConnectionFactory(http);
        if (spec.transport.has("stream_window")) {
            factory.setInitialStreamRecvWindow(window(spec.transport, "stream_window"));
        }
        if (spec.transport.has("connection_window")) {
            factory.setInitialSessionRecvWindow(window(spec.transport, "connection_window"));
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
        SslContextFactory.Server tls = JettyServer.identity(spec);
        tls.setIncludeProtocols("TLSv1.3");
        tls.setSniRequired(false);
        if (!spec.resumption) {
            tls.setSslSessionTimeout(LONGER_THAN_TICKETS_S);
        }
        return tls;
    }
}
