package wirelab.jetty;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.eclipse.jetty.http.UriCompliance;
import org.eclipse.jetty.server.AbstractNetworkConnector;
import org.eclipse.jetty.server.HttpConfiguration;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.util.ssl.SslContextFactory;
import org.eclipse.jetty.util.thread.QueuedThreadPool;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Protocol;
import wirelab.contract.ServerSpec;
import wirelab.contract.Unsupported;
import wirelab.net.Pem;
import wirelab.server.Running;
import wirelab.server.Site;

/** Jetty's server, with one connector: that of the protocol. */
final class JettyServer implements Running {
    private final Server server;
    private final AbstractNetworkConnector connector;
    private final Map<String, Object> configured = new ConcurrentHashMap<>();

    JettyServer(ServerSpec spec, Site site) throws Failure {
        if (spec.earlyData) {
            throw new Unsupported("tls: `early_data` = true: Jetty has no 0-RTT, over TCP or QUIC");
        }
        HttpConfiguration http = new HttpConfiguration();
        // The handler answers a path that leads outside with 404, as every missing path.
        http.setUriCompliance(UriCompliance.UNSAFE);
        http.setIdleTimeout(-1);
        server = new Server(new QueuedThreadPool());
        connector = spec.protocol == Protocol.H3 ? QuicListener.connector(server, http, spec, configured)
            : TcpListener.connector(server, http, spec, configured);
        connector.setHost(spec.address.getHostAddress());
        connector.setPort(spec.port);
        connector.setIdleTimeout(0); // idle connections are kept
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

    /** Certificate and key, as Jetty wants them. */
    static SslContextFactory.Server identity(ServerSpec spec) throws Failure {
        SslContextFactory.Server tls = new SslContextFactory.Server();
        tls.setKeyStore(Pem.identity(spec.certificate, spec.key));
        tls.setKeyStorePassword(Pem.PASSWORD);
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
