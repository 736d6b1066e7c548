package wirelab.kwik;

import java.io.IOException;
import java.net.DatagramSocket;
import java.net.InetSocketAddress;
import java.security.cert.CertificateException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import tech.kwik.core.server.ServerConnectionConfig;
import tech.kwik.core.server.ServerConnector;
import tech.kwik.flupke.server.Http3ApplicationProtocolFactory;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Protocol;
import wirelab.contract.ServerSpec;
import wirelab.contract.Unsupported;
import wirelab.net.Pem;
import wirelab.net.UdpSettings;
import wirelab.server.Running;
import wirelab.server.Site;

/** kwik's server, with flupke for HTTP/3. */
final class KwikServer implements Running {
    /** Credit for bodies, of the order that other libraries grant by default; kwik has none. */
    private static final long STREAM_WINDOW = 1_000_000;
    private static final long CONNECTION_WINDOW = 10_000_000;
    private static final int STREAMS = 1000;
    private static final int HOUR_S = 3600;

    private final DatagramSocket socket;
    private final ServerConnector connector;
    private final Map<String, Object> configured = new ConcurrentHashMap<>();
    private final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "requests");
        thread.setDaemon(true);
        return thread;
    });

    KwikServer(ServerSpec spec, Site site) throws Failure {
        if (spec.earlyData) {
            throw new Unsupported("tls: `early_data` = true: kwik's server cannot turn 0-RTT on or off");
        }
        UdpSettings settings = new UdpSettings(spec.transport);
        if (spec.transport.has("congestion")) {
            spec.transport.choose("congestion", List.of("reno")); // kwik has no other
        }
        configured.put("congestion", "reno");
        ServerConnectionConfig.Builder config = ServerConnectionConfig.builder()
            .maxIdleTimeoutInSeconds(HOUR_S) // idle connections are kept
            .maxOpenPeerInitiatedBidirectionalStreams(STREAMS)
            .maxOpenPeerInitiatedUnidirectionalStreams(10)
            .retryRequired(false);
        ServerConnectionConfig made = windows(config, spec.transport).build();
        configured.put("stream_window", made.maxBidirectionalStreamBufferSize());
        configured.put("connection_window", made.maxConnectionBufferSize());
        try {
            socket = new DatagramSocket(new InetSocketAddress(spec.address, spec.port));
            settings.apply(socket);
            configured.putAll(UdpSettings.configured(socket));
            connector = ServerConnector.builder().withSocket(socket).withConfiguration(made).withLogger(new ErrorLog())
                .withKeyStore(Pem.identity(spec.certificate, spec.key), Pem.ALIAS, Pem.PASSWORD.toCharArray()).build();
        } catch (IOException | CertificateException error) {
            throw new Failure(ErrorKind.OTHER, "binding " + spec.address + " port " + spec.port + ": " + error.getMessage());
        }
        if (!spec.resumption) {
            NoTickets.install(connector);
        }
        if (spec.protocol == Protocol.H3) {
            Http3ApplicationProtocolFactory http3 = new Http3ApplicationProtocolFactory(new SiteHandler(site));
            http3.setMaxDataSize(Long.MAX_VALUE);
            connector.registerApplicationProtocol(spec.protocol.alpn, SureStreams.of(http3));
        } else {
            connector.registerApplicationProtocol(spec.protocol.alpn, new RawProtocol(site, threads));
        }
        connector.start();
    }

    /** A stream's window is never larger than its connection's: kwik would not have it. */
    private static ServerConnectionConfig.Builder windows(ServerConnectionConfig.Builder config, Fields transport) {
        long most = transport.has("connection_window") ? transport.count("connection_window", 1) : Long.MAX_VALUE;
        long stream = transport.has("stream_window") ? transport.count("stream_window", 1) : Math.min(STREAM_WINDOW, most);
        if (stream > most) {
            throw new Unsupported("transport: `stream_window` = " + stream + "; supported: up to `connection_window`, " + most);
        }
        return config.maxUnidirectionalStreamBufferSize(Math.min(STREAM_WINDOW, most))
            .maxBidirectionalStreamBufferSize(stream)
            .maxConnectionBufferSize(most < Long.MAX_VALUE ? most : Math.max(CONNECTION_WINDOW, stream));
    }

    @Override
    public int port() {
        return socket.getLocalPort();
    }

    @Override
    public Map<String, Object> configured() {
        return configured;
    }

    @Override
    public void stop() {
        connector.close();
    }
}
