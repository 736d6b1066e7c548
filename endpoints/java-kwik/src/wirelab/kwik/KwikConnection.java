package wirelab.kwik;

import java.io.IOException;
import java.net.DatagramSocket;
import java.nio.file.Path;
import java.security.cert.CertificateEncodingException;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.locks.LockSupport;
import javax.net.ssl.X509TrustManager;
import tech.kwik.agent15.engine.TlsClientEngine;
import tech.kwik.core.QuicClientConnection;
import tech.kwik.core.QuicSessionTicket;
import tech.kwik.core.QuicStream;
import tech.kwik.flupke.impl.Http3ClientConnectionImpl;
import wirelab.client.Connection;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;
import wirelab.contract.Protocol;
import wirelab.net.UdpSettings;

/** A connection of kwik, raw or with flupke on top. */
final class KwikConnection implements Connection {
    /** Three streams of the server's and none more (RFC 9114, section 6.2). */
    private static final int SERVERS_STREAMS = 3;
    private static final Duration HOUR = Duration.ofHours(1);
    /** The interval and the number of checks for the ticket. */
    private static final long TICKET_WAIT_NS = 1_000_000;
    private static final int TICKET_WAITS = 20;
    /** H3_REQUEST_CANCELLED (RFC 9114, section 8.1). */
    private static final long CANCELLED = 0x10c;

    private final KwikTransport transport;
    private volatile QuicClientConnection connection;
    /** Null for the raw transport. */
    private volatile Http3ClientConnectionImpl http;
    private volatile Handshake handshake;
    /** Whether the server presented a certificate that was accepted, or why not. */
    private volatile boolean presented;
    private volatile CertificateException rejected;
    private volatile boolean closed;

    KwikConnection(KwikTransport transport) {
        this.transport = transport;
    }

    @Override
    public void open(Opening opening) {
        transport.threads.execute(() -> {
            String attempt = "connecting to " + transport.spec.address + " port " + transport.spec.port;
            try {
                connect(opening);
            } catch (Failure failure) {
                opening.failed(failure);
            } catch (IOException | RuntimeException error) {
                CertificateException reason = rejected;
                opening.failed(Faults.connecting(attempt, reason == null ? error : reason));
            }
        });
    }

    private void connect(Opening opening) throws IOException, Failure {
        QuicSessionTicket ticket = transport.resumes() ? transport.takeTicket() : null;
        QuicClientConnection.Builder builder = QuicClientConnection.newBuilder()
            .host(transport.spec.serverName).port(transport.spec.port).applicationProtocol(transport.spec.protocol.alpn)
            .connectTimeout(Duration.ofNanos(transport.spec.connectNs).plusSeconds(1)) // the engine's deadline comes first
            .maxIdleTimeout(HOUR) // idle connections are kept
            .defaultStreamReceiveBufferSize(transport.streamWindow)
            .maxOpenPeerInitiatedUnidirectionalStreams(SERVERS_STREAMS).maxOpenPeerInitiatedBidirectionalStreams(0)
            .customTrustManager(trust()).logger(new ErrorLog()).socketFactory(server -> socket());
        Path secrets = transport.secrets == null ? null : transport.secrets.next();
        if (secrets != null) {
            builder.secrets(secrets);
        }
        if (ticket != null) {
            builder.sessionTicket(ticket);
        }
        QuicClientConnection made = builder.build();
        connection = made;
        TlsClientEngine tls = TlsEngines.guard(made);
        if (!transport.spec.verify) {
            tls.setHostnameVerifier((name, certificate) -> true);
        }
        try {
            if (transport.spec.protocol == Protocol.H3) {
                http = new Http3ClientConnectionImpl(SureStreams.of(made), transport.threads);
                http.connect();
            } else {
                made.connect();
            }
        } finally {
            if (secrets != null) {
                transport.secrets.take(secrets);
            }
        }
        long now = System.nanoTime();
        handshake = presented ? Handshake.FULL : Handshake.RESUMED;
        tell(made, tls);
        if (closed) {
            made.close();
        }
        opening.opened(now);
    }

    private DatagramSocket socket() throws java.net.SocketException {
        DatagramSocket socket = new DatagramSocket();
        transport.udp.apply(socket);
        if (!transport.configured.containsKey("udp_send_buffer")) {
            transport.configured.putAll(UdpSettings.configured(socket));
        }
        return socket;
    }

    private X509TrustManager trust() {
        var judge = transport.trust.telling(() -> presented = true);
        return new X509TrustManager() {
            @Override
            public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
                try {
                    judge.checkServerTrusted(chain, type);
                } catch (CertificateException reason) {
                    rejected = reason;
                    throw reason;
                }
            }

            @Override
            public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
                judge.checkClientTrusted(chain, type);
            }

            @Override
            public X509Certificate[] getAcceptedIssuers() {
                return judge.getAcceptedIssuers();
            }
        };
    }

    /** The negotiated values: kwik and agent15 accept only the offered application protocol and group. */
    private void tell(QuicClientConnection made, TlsClientEngine tls) {
        if (transport.configured.containsKey("alpn") || handshake != Handshake.FULL) {
            return;
        }
        try {
            long bytes = 0;
            for (X509Certificate certificate : made.getServerCertificateChain()) {
                bytes += certificate.getEncoded().length;
            }
            transport.configured.put("certificate_chain_bytes", bytes);
        } catch (CertificateEncodingException unknown) {
            // Not reported: absent.
        }
        transport.configured.put("cipher", tls.getSelectedCipher().name());
        transport.configured.put("group", "X25519");
        transport.configured.put("alpn", transport.spec.protocol.alpn);
    }

    @Override
    public void send(Exchange exchange) {
        transport.threads.execute(() -> {
            if (exchange.isSettled()) {
                return;
            }
            try {
                if (http != null) {
                    HttpExchange.run(http, transport.request, exchange);
                } else {
                    RawExchange.run(connection, transport.spec, exchange);
                }
            } catch (IOException | RuntimeException error) {
                exchange.fail(Faults.of(transport.spec.method + " " + transport.spec.path, error));
            }
        });
    }

    @Override
    public void cancel(Exchange exchange) {
        if (exchange.attachment instanceof QuicStream stream) {
            stream.abortReading(CANCELLED);
            stream.resetStream(CANCELLED);
        }
    }

    @Override
    public boolean isOpen() {
        return !closed && connection.isConnected();
    }

    @Override
    public Handshake handshake() {
        return handshake;
    }

    @Override
    public void close(Runnable then) {
        transport.threads.execute(() -> {
            QuicClientConnection made = connection;
            if (made != null && handshake != null && transport.resumes() && isOpen()) {
                awaitTicket(made);
            }
            closed = true;
            if (made != null) {
                made.close();
            }
            then.run();
        });
    }

    private void awaitTicket(QuicClientConnection made) {
        for (int i = 0; i < TICKET_WAITS && made.getNewSessionTickets().isEmpty(); i++) {
            LockSupport.parkNanos(TICKET_WAIT_NS);
        }
        List<QuicSessionTicket> tickets = made.getNewSessionTickets();
        if (!tickets.isEmpty()) {
            transport.keepTicket(tickets.get(tickets.size() - 1));
        }
    }
}
