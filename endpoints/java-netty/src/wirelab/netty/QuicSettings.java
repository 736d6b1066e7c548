package wirelab.netty;

import io.netty.handler.codec.quic.QLogConfiguration;
import io.netty.handler.codec.quic.QuicCodecBuilder;
import io.netty.handler.codec.quic.QuicCongestionControlAlgorithm;
import java.net.DatagramSocket;
import java.net.SocketException;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import wirelab.contract.Fields;
import wirelab.contract.Unsupported;
import wirelab.net.UdpSettings;

/** quiche's settings, for a server and a client. quiche does not report its active settings. */
final class QuicSettings {
    /** Credit for bodies, of the order that other libraries grant by default; Netty has none. */
    private static final long STREAM_WINDOW = 1_000_000;
    private static final long CONNECTION_WINDOW = 10_000_000;
    /** QUIC's minimum for every path (RFC 9000, section 14), quiche's default, and the largest datagram. */
    private static final int LEAST_PAYLOAD = 1200;
    private static final int MOST_PAYLOAD = 65_527;

    private final UdpSettings udp;
    private final long stream;
    private final long connection;
    private final String congestion;
    private final long payload;
    private final String qlogFolder;

    /** Takes the settings that it honours. */
    QuicSettings(Fields transport, Fields spec) {
        udp = new UdpSettings(transport);
        stream = transport.has("stream_window") ? transport.count("stream_window", 1) : STREAM_WINDOW;
        connection = transport.has("connection_window")
            ? transport.count("connection_window", 1) : Math.max(CONNECTION_WINDOW, stream);
        congestion = transport.has("congestion")
            ? transport.choose("congestion", List.of("cubic", "bbr", "reno")) : "cubic"; // quiche's default
        payload = transport.has("max_udp_payload") ? transport.count("max_udp_payload", 1) : LEAST_PAYLOAD;
        if (payload < LEAST_PAYLOAD || payload > MOST_PAYLOAD) {
            throw new Unsupported("transport: `max_udp_payload` = " + payload + "; supported: " + LEAST_PAYLOAD + " to "
                + MOST_PAYLOAD);
        }
        qlogFolder = spec.textOrNull("qlog_dir");
    }

    <B extends QuicCodecBuilder<B>> B apply(B codec) {
        return codec.congestionControlAlgorithm(QuicCongestionControlAlgorithm.valueOf(congestion.toUpperCase(Locale.ROOT)))
            .maxIdleTimeout(1, TimeUnit.HOURS) // idle connections are kept
            .maxSendUdpPayloadSize(payload)
            .initialMaxData(connection)
            .initialMaxStreamDataBidirectionalLocal(stream).initialMaxStreamDataBidirectionalRemote(stream);
    }

    void apply(DatagramSocket socket) throws SocketException {
        udp.apply(socket);
    }

    /** Where each connection writes a file; null: nowhere. */
    QLogConfiguration qlog() {
        return qlogFolder == null ? null : new QLogConfiguration(qlogFolder, "wirelab", "");
    }

    Map<String, Object> configured(DatagramSocket socket) throws SocketException {
        Map<String, Object> facts = new HashMap<>(UdpSettings.configured(socket));
        facts.put("stream_window", stream);
        facts.put("connection_window", connection);
        facts.put("congestion", congestion);
        facts.put("max_udp_payload", payload);
        return facts;
    }
}
