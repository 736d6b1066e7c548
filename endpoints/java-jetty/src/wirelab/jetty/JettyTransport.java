package wirelab.jetty;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.eclipse.jetty.client.Destination;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.HttpClientTransport;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.client.transport.HttpClientTransportOverHTTP;
import org.eclipse.jetty.http2.client.HTTP2Client;
import org.eclipse.jetty.http2.client.transport.HttpClientTransportOverHTTP2;
import org.eclipse.jetty.util.Promise;
import org.eclipse.jetty.util.SocketAddressResolver;
import wirelab.client.Connection;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Protocol;
import wirelab.contract.Unsupported;
import wirelab.net.TcpSettings;
import wirelab.net.Tickets;
import wirelab.net.Trust;

/** Jetty's client of HTTP/1.1 and HTTP/2. Its pool is left aside: the engine asks for each connection. */
final class JettyTransport implements Transport {
    final ClientSpec spec;
    final TcpSettings settings;
    /** Null in clear text. */
    final Tickets tickets;
    final HttpClient client;
    final Destination destination;
    final ObservedConnector connector;
    final Map<String, Object> configured = new ConcurrentHashMap<>();
    private final String uri;

    JettyTransport(ClientSpec spec) throws Failure {
        this.spec = spec;
        if (spec.resumption.equals("zero_rtt")) {
            throw new Unsupported("spec: `resumption` = `zero_rtt`: the TLS of the JDK has no 0-RTT");
        }
        settings = new TcpSettings(spec.transport);
        tickets = spec.protocol.isSecure()
            ? new Tickets(new Trust(spec.trustAnchor, spec.verify), spec.resumption.equals("resume")) : null;
        String scheme = spec.protocol.isSecure() ? "https" : "http";
        String host = spec.serverName.contains(":") ? "[" + spec.serverName + "]" : spec.serverName;
        uri = scheme + "://" + host + ":" + spec.port + spec.path;
        connector = new ObservedConnector(this);
        connector.setTCPNoDelay(settings.noDelay());
        client = new HttpClient(transport());
        client.setFollowRedirects(false);
        client.setIdleTimeout(0); // connections that rest are kept
        client.setConnectTimeout(TimeUnit.NANOSECONDS.toMillis(spec.connectNs) + 1000); // the engine's comes before
        client.setSocketAddressResolver(new SocketAddressResolver() {
            @Override
            public void resolve(String name, int port, Map<String, Object> context, Promise<List<InetSocketAddress>> promise) {
                promise.succeeded(List.of(new InetSocketAddress(spec.address, port)));
            }
        });
        try {
            configured.putAll(settings.probe());
            client.start();
        } catch (Unsupported told) {
            throw told;
        } catch (Exception error) {
            throw new Failure(ErrorKind.OTHER, "starting Jetty's client: " + error);
        }
        client.getContentDecoderFactories().clear(); // no compression
        destination = client.resolveDestination(newRequest());
    }

    private HttpClientTransport transport() {
        if (spec.protocol == Protocol.H1 || spec.protocol == Protocol.H1C) {
            return new HttpClientTransportOverHTTP(connector);
        }
        HTTP2Client http2 = new HTTP2Client(connector);
        if (spec.transport.has("stream_window")) {
            http2.setInitialStreamRecvWindow(JettyServer.window(spec.transport, "stream_window"));
        }
        if (spec.transport.has("connection_window")) {
            http2.setInitialSessionRecvWindow(JettyServer.window(spec.transport, "connection_window"));
        }
        configured.put("stream_window", http2.getInitialStreamRecvWindow());
        configured.put("connection_window", http2.getInitialSessionRecvWindow());
        return new HttpClientTransportOverHTTP2(http2);
    }

    /** The request of the spec; Jetty takes each only once. */
    Request newRequest() {
        Request request = client.newRequest(uri).method(spec.method);
        for (Map.Entry<String, String> field : spec.headers) {
            request.headers(fields -> fields.add(field.getKey(), field.getValue()));
        }
        if (spec.bodySize > 0) {
            request.body(new PatternContent(spec.bodySize));
        }
        return request;
    }

    /** What is in force on the first socket, which is the check request's. */
    void readBack(SocketChannel socket) {
        try {
            configured.putAll(settings.configured(socket));
        } catch (IOException gone) {
            // What the probe said stays.
        }
    }

    @Override
    public Connection prepare() throws Failure {
        return new JettyConnection(this);
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
