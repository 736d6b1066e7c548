package wirelab.jetty;

import java.io.IOException;
import java.nio.channels.DatagramChannel;
import java.util.Map;
import org.eclipse.jetty.http3.server.HTTP3ServerConnectionFactory;
import org.eclipse.jetty.http3.server.HTTP3ServerQuicConfiguration;
import org.eclipse.jetty.quic.api.Session;
import org.eclipse.jetty.quic.common.ProtocolSession;
import org.eclipse.jetty.quic.quiche.PemPaths;
import org.eclipse.jetty.quic.quiche.QuicheSession;
import org.eclipse.jetty.quic.quiche.server.QuicheServerConnector;
import org.eclipse.jetty.quic.quiche.server.QuicheServerQuicConfiguration;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import wirelab.contract.Failure;
import wirelab.contract.ServerSpec;
import wirelab.contract.Unsupported;

/** Jetty's connector of HTTP/3, with quiche below. */
final class QuicListener {
    private QuicListener() {
    }

    static QuicheServerConnector connector(Server server, HttpConfiguration http, ServerSpec spec, Map<String, Object> configured)
        throws Failure {
        if (spec.resumption) {
            throw new Unsupported("tls: `resumption` = true, with h3: Jetty makes each connection a TLS context of its own, and no "
                + "other one can read its tickets");
        }
        QuicSettings settings = new QuicSettings(spec.transport);
        QuicheServerQuicConfiguration quic = HTTP3ServerQuicConfiguration.configure(new Identity(spec));
        settings.apply(quic);
        HTTP3ServerConnectionFactory http3 = new HTTP3ServerConnectionFactory(http) {
            @Override
            public ProtocolSession newProtocolSession(Session session, Map<String, Object> context) {
                CarefulQuiche.opened((QuicheSession) session);
                return super.newProtocolSession(session, context);
            }
        };
        http3.getHTTP3Configuration().setStreamIdleTimeout(0); // a delay may be as long as it likes
        return new QuicheServerConnector(server, JettyServer.identity(spec), quic, http3) {
            @Override
            protected DatagramChannel openDatagramChannel() throws IOException {
                DatagramChannel channel = super.openDatagramChannel();
                settings.apply(channel.socket());
                configured.putAll(settings.configured(channel.socket(), quic.getRemoteBidirectionalStreamMaxData(),
                    quic.getSessionMaxData()));
                return channel;
            }
        };
    }

    /** quiche reads certificate and key from the spec's files. Jetty would write copies and remove them. */
    private static final class Identity extends QuicheServerQuicConfiguration {
        private final ServerSpec spec;

        Identity(ServerSpec spec) {
            super(spec.key.toAbsolutePath().getParent()); // Jetty demands a folder for its copies
            this.spec = spec;
        }

        @Override
        public void configure(SslContextFactory.Server tls) {
            getImplementationConfiguration().put(tls, new PemPaths(spec.key, spec.certificate, null));
        }

        @Override
        public void deconfigure(SslContextFactory.Server tls) {
            getImplementationConfiguration().remove(tls);
        }
    }
}
