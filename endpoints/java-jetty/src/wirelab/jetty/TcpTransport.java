package wirelab.jetty;

import java.io.IOException;
import java.nio.channels.SocketChannel;
import org.eclipse.jetty.client.HttpClientTransport;
import org.eclipse.jetty.client.transport.HttpClientTransportOverHTTP;
import org.eclipse.jetty.http2.client.HTTP2Client;
import org.eclipse.jetty.http2.client.transport.HttpClientTransportOverHTTP2;
import wirelab.client.Connection;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Unsupported;
import wirelab.net.TcpSettings;
import wirelab.net.Tickets;
import wirelab.net.Trust;

/** Jetty's client of HTTP/1.1 and HTTP/2. */
final class TcpTransport extends JettyTransport {
    final TcpSettings settings;
    /** Null in clear text. */
    final Tickets tickets;
    final ObservedConnector connector;

    TcpTransport(ClientSpec spec) throws Failure {
        super(spec);
        if (spec.resumption.equals("zero_rtt")) {
            throw new Unsupported("spec: `resumption` = `zero_rtt`: the TLS of the JDK has no 0-RTT");
        }
        settings = new TcpSettings(spec.transport);
        tickets = spec.protocol.isSecure()
            ? new Tickets(new Trust(spec.trustAnchor, spec.verify), spec.resumption.equals("resume")) : null;
        connector = new ObservedConnector(this);
        connector.setTCPNoDelay(settings.noDelay());
        try {
            configured.putAll(settings.probe());
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making a socket: " + error.getMessage());
        }
        start(protocol());
    }

    private HttpClientTransport protocol() {
        if (!spec.protocol.multiplexes()) {
            return new HttpClientTransportOverHTTP(connector);
        }
        HTTP2Client http2 = new HTTP2Client(connector);
        if (spec.transport.has("stream_window")) {
            http2.setInitialStreamRecvWindow(TcpListener.window(spec.transport, "stream_window"));
        }
        if (spec.transport.has("connection_window")) {
            http2.setInitialSessionRecvWindow(TcpListener.window(spec.transport, "connection_window"));
        }
        configured.put("stream_window", http2.getInitialStreamRecvWindow());
        configured.put("connection_window", http2.getInitialSessionRecvWindow());
        return new HttpClientTransportOverHTTP2(http2);
    }

    /** The active settings of the first socket, which is the check request's. */
    void readBack(SocketChannel socket) {
        try {
            configured.putAll(settings.configured(socket));
        } catch (IOException gone) {
            // The probe's values stay.
        }
    }

    @Override
    public Connection prepare() throws Failure {
        return new TcpConnection(this);
    }

    @Override
    public int tickets() {
        return tickets.stored();
    }
}
