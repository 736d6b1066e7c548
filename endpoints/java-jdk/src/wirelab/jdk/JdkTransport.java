package wirelab.jdk;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.nio.channels.SocketChannel;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.atomic.AtomicBoolean;
import wirelab.client.Connection;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Protocol;
import wirelab.contract.Unsupported;
import wirelab.net.Hosts;
import wirelab.net.PatternBody;
import wirelab.net.TcpSettings;
import wirelab.net.Tickets;
import wirelab.net.Trust;

/** Settings of all connections. */
final class JdkTransport implements Transport {
    final ClientSpec spec;
    final HttpRequest request;
    final HttpClient.Version version;
    final TcpSettings settings;
    /** Null in clear text. */
    final Tickets tickets;
    /** As HttpClient makes it for itself: threads as needed. */
    final ExecutorService threads = Executors.newCachedThreadPool(task -> {
        Thread thread = new Thread(task, "client");
        thread.setDaemon(true);
        return thread;
    });
    final ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor(task -> {
        Thread thread = new Thread(task, "closing");
        thread.setDaemon(true);
        return thread;
    });
    final Map<String, Object> configured = new ConcurrentHashMap<>();
    private final AtomicBoolean readBack = new AtomicBoolean();

    JdkTransport(ClientSpec spec) throws Failure {
        this.spec = spec;
        version = spec.protocol == Protocol.H2 ? HttpClient.Version.HTTP_2 : HttpClient.Version.HTTP_1_1;
        if (spec.resumption.equals("zero_rtt")) {
            throw new Unsupported("spec: `resumption` = `zero_rtt`: the TLS of the JDK has no 0-RTT");
        }
        settings = new TcpSettings(spec.transport);
        settings.demandNoDelay("HttpClient");
        if (spec.protocol == Protocol.H2) {
            Windows.take(spec.transport, configured);
        }
        tickets = spec.protocol.isSecure()
            ? new Tickets(new Trust(spec.trustAnchor, spec.verify), spec.resumption.equals("resume")) : null;
        Hosts.name(spec.serverName, spec.address);
        request = request(spec);
        try {
            configured.putAll(settings.probe());
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making a socket: " + error);
        }
    }

    private static HttpRequest request(ClientSpec spec) throws Failure {
        try {
            String scheme = spec.protocol.isSecure() ? "https" : "http";
            String host = spec.serverName.contains(":") ? "[" + spec.serverName + "]" : spec.serverName;
            HttpRequest.Builder builder =
                HttpRequest.newBuilder(URI.create(scheme + "://" + host + ":" + spec.port + spec.path));
            boolean bodiless = spec.bodySize == 0;
            builder.method(spec.method, bodiless ? BodyPublishers.noBody()
                : BodyPublishers.fromPublisher(BodyPublishers.ofByteArrays(PatternBody.pieces(spec.bodySize)), spec.bodySize));
            for (Map.Entry<String, String> field : spec.headers) {
                builder.header(field.getKey(), field.getValue());
            }
            return builder.build();
        } catch (IllegalArgumentException refused) {
            throw new Unsupported("spec.request: HttpClient does not send it: " + refused.getMessage());
        }
    }

    @Override
    public Connection prepare() throws Failure {
        return new JdkConnection(this);
    }

    /** The active settings of the first socket, which is the check request's. */
    void readBack(SocketChannel socket) {
        if (readBack.compareAndSet(false, true)) {
            try {
                configured.putAll(settings.configured(socket));
            } catch (IOException gone) {
                readBack.set(false); // the next one may live longer
            }
        }
    }

    @Override
    public Map<String, Object> configured() {
        return configured;
    }

    @Override
    public int tickets() {
        return tickets.stored();
    }
}
