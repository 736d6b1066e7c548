package wirelab.jetty;

import java.net.DatagramSocket;
import java.net.SocketException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.eclipse.jetty.quic.common.QuicConfiguration;
import wirelab.contract.Fields;
import wirelab.contract.Unsupported;
import wirelab.net.UdpSettings;

/** quiche's settings through Jetty, for a server and a client. quiche does not report its active settings. */
final class QuicSettings {
    /** Jetty's fixed setting of quiche. */
    private static final String CONGESTION = "cubic";
    /** quiche's default, which Jetty leaves. */
    private static final long PAYLOAD = 1200;
    private static final long DEFAULT = 0;

    private final UdpSettings udp;
    private final long stream;
    private final long connection;

    /** Takes the settings that it honours. */
    QuicSettings(Fields transport) {
        udp = new UdpSettings(transport);
        stream = transport.has("stream_window") ? transport.count("stream_window", 1) : DEFAULT;
        connection = transport.has("connection_window") ? transport.count("connection_window", 1) : DEFAULT;
        if (transport.has("congestion")) {
            transport.choose("congestion", List.of(CONGESTION));
        }
        if (transport.has("max_udp_payload") && transport.count("max_udp_payload", 1) != PAYLOAD) {
            throw new Unsupported("transport: `max_udp_payload`; supported: " + PAYLOAD + ", which Jetty leaves quiche");
        }
    }

    void apply(QuicConfiguration quic) {
        quic.setStreamIdleTimeout(0);
        if (stream != DEFAULT) { // whichever side opens the stream
            quic.setLocalBidirectionalStreamMaxData(stream);
            quic.setRemoteBidirectionalStreamMaxData(stream);
        }
        if (connection != DEFAULT) {
            quic.setSessionMaxData(connection);
        }
    }

    void apply(DatagramSocket socket) throws SocketException {
        udp.apply(socket);
    }

    /** Refuses a setting that the kernel lacks, tried on a temporary socket. */
    Map<String, Object> probe(long streamWindow, long connectionWindow) throws SocketException {
        try (DatagramSocket socket = new DatagramSocket()) {
            apply(socket);
            return configured(socket, streamWindow, connectionWindow);
        }
    }

    Map<String, Object> configured(DatagramSocket socket, long streamWindow, long connectionWindow) throws SocketException {
        Map<String, Object> facts = new HashMap<>(UdpSettings.configured(socket));
        facts.put("stream_window", streamWindow);
        facts.put("connection_window", connectionWindow);
        facts.put("congestion", CONGESTION);
        facts.put("max_udp_payload", PAYLOAD);
        return facts;
    }
}
