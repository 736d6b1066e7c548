package wirelab.jetty;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.eclipse.jetty.client.Destination;
import org.eclipse.jetty.client.HttpClient;
import org.eclipse.jetty.client.HttpClientTransport;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.util.Promise;
import org.eclipse.jetty.util.SocketAddressResolver;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Unsupported;

/** The common part of Jetty's clients over TCP and over QUIC. Its pool is unused: the engine asks for each connection. */
abstract class JettyTransport implements Transport {
    final ClientSpec spec;
    final Map<String, Object> configured = new ConcurrentHashMap<>();
    private final String uri;
    private HttpClient client;
    private Destination destination;

    JettyTransport(ClientSpec spec) {
        this.spec = spec;
        String scheme = spec.protocol.isSecure() ? "https" : "http";
        String host = spec.serverName.contains(":") ? "[" + spec.serverName + "]" : spec.serverName;
        uri = scheme + "://" + host + ":" + spec.port + spec.path;
    }

    /** Starts a client of a protocol, with nothing connected. */
    final void start(HttpClientTransport protocol) throws Failure {
        client = new HttpClient(protocol);
        client.setFollowRedirects(false);
        client.setIdleTimeout(0); // idle connections are kept
        client.setConnectTimeout(TimeUnit.NANOSECONDS.toMillis(spec.connectNs) + 1000); // the engine's deadline comes first
        try {
            client.setSocketAddressResolver(resolver());
            client.start();
        } catch (Unsupported told) {
            throw told;
        } catch (Exception error) {
            throw new Failure(ErrorKind.OTHER, "starting Jetty's client: " + error);
        }
        client.getContentDecoderFactories().clear(); // no compression
        destination = client.resolveDestination(newRequest());
    }

    /** The name stays with the address, because quiche takes the wanted certificate's name from there. */
    private SocketAddressResolver resolver() throws UnknownHostException {
        InetAddress named = InetAddress.getByAddress(spec.serverName, spec.address.getAddress());
        return new SocketAddressResolver() {
            @Override
            public void resolve(String name, int port, Map<String, Object> context, Promise<List<InetSocketAddress>> promise) {
                promise.succeeded(List.of(new InetSocketAddress(named, port)));
            }
        };
    }

    /** The request of the spec; Jetty takes each only once. */
    final Request newRequest() {
        Request request = client.newRequest(uri).method(spec.method);
        for (Map.Entry<String, String> field : spec.headers) {
            request.headers(fields -> fields.add(field.getKey(), field.getValue()));
        }
        if (spec.bodySize > 0) {
            request.body(new PatternContent(spec.bodySize));
        }
        return request;
    }

    final HttpClient client() {
        return client;
    }

    final Destination destination() {
        return destination;
    }

    @Override
    public final Map<String, Object> configured() {
        return configured;
    }
}
