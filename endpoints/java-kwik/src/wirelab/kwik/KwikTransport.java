package wirelab.kwik;

import java.net.URI;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import tech.kwik.core.QuicSessionTicket;
import wirelab.client.Connection;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.Protocol;
import wirelab.contract.Unsupported;
import wirelab.net.Hosts;
import wirelab.net.PatternBody;
import wirelab.net.Trust;
import wirelab.net.UdpSettings;

/** kwik's clients, with flupke for HTTP/3. */
final class KwikTransport implements Transport {
    /** The least that kwik takes. */
    private static final long LEAST_WINDOW = 1500;
    /** As in the server; kwik's own default, 250 000, is less than some bodies that are echoed. */
    private static final long STREAM_WINDOW = 1_000_000;
    /** kwik's factor for a connection. */
    private static final long CONNECTION_FACTOR = 10;

    final ClientSpec spec;
    final Trust trust;
    final UdpSettings udp;
    final long streamWindow;
    /** Where TLS secrets go; null: nowhere. */
    final KeyLog secrets;
    /** Null for the raw transport. */
    final HttpRequest request;
    /** kwik's streams block on reads and writes: a thread for each request, and for connecting. */
    final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "requests");
        thread.setDaemon(true);
        return thread;
    });
    final Map<String, Object> configured = new ConcurrentHashMap<>();
    private final ConcurrentLinkedDeque<QuicSessionTicket> tickets = new ConcurrentLinkedDeque<>();
    private final AtomicInteger stored = new AtomicInteger();

    KwikTransport(ClientSpec spec) throws Failure {
        this.spec = spec;
        if (spec.resumption.equals("zero_rtt")) {
            throw new Unsupported("spec: `resumption` = `zero_rtt`: flupke sends no request in early data");
        }
        Fields transport = spec.transport;
        udp = new UdpSettings(transport);
        if (transport.has("congestion")) {
            transport.choose("congestion", List.of("reno")); // kwik has no other
        }
        streamWindow = transport.has("stream_window") ? transport.count("stream_window", 1) : STREAM_WINDOW;
        if (streamWindow < LEAST_WINDOW) {
            throw new Unsupported("transport: `stream_window` = " + streamWindow + "; supported: from " + LEAST_WINDOW);
        }
        String path = spec.tls.textOrNull("key_log");
        secrets = path == null ? null : new KeyLog(Path.of(path));
        configured.put("congestion", "reno");
        configured.put("stream_window", streamWindow);
        configured.put("connection_window", CONNECTION_FACTOR * streamWindow);
        trust = new Trust(spec.trustAnchor, spec.verify);
        Hosts.name(spec.serverName, spec.address);
        request = spec.protocol == Protocol.H3 ? request(spec) : null;
    }

    private static HttpRequest request(ClientSpec spec) {
        try {
            String host = spec.serverName.contains(":") ? "[" + spec.serverName + "]" : spec.serverName;
            HttpRequest.Builder builder =
                HttpRequest.newBuilder(URI.create("https://" + host + ":" + spec.port + spec.path));
            builder.method(spec.method, spec.bodySize == 0 ? BodyPublishers.noBody()
                : BodyPublishers.fromPublisher(BodyPublishers.ofByteArrays(PatternBody.pieces(spec.bodySize)), spec.bodySize));
            for (Map.Entry<String, String> field : spec.headers) {
                builder.header(field.getKey(), field.getValue());
            }
            return builder.build();
        } catch (IllegalArgumentException refused) {
            throw new Unsupported("spec.request: flupke does not send it: " + refused.getMessage());
        }
    }

    @Override
    public Connection prepare() {
        return new KwikConnection(this);
    }

    @Override
    public Map<String, Object> configured() {
        return configured;
    }

    boolean resumes() {
        return spec.resumption.equals("resume");
    }

    /** A ticket that no connection has used; null: none. */
    QuicSessionTicket takeTicket() {
        QuicSessionTicket ticket = tickets.pollFirst();
        if (ticket != null) {
            stored.decrementAndGet();
        }
        return ticket;
    }

    void keepTicket(QuicSessionTicket ticket) {
        tickets.addFirst(ticket);
        stored.incrementAndGet();
    }

    @Override
    public int tickets() {
        return stored.get();
    }
}
