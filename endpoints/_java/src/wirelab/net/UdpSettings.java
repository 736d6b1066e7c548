package wirelab.net;

import java.net.DatagramSocket;
import java.net.SocketException;
import java.util.List;
import java.util.Map;
import wirelab.contract.Fields;
import wirelab.contract.Unsupported;

/** The settings that every UDP socket of Java can have: its buffers. Java has no offloads. */
public final class UdpSettings {
    private final int send;
    private final int receive;

    /** Takes the settings that it honours. */
    public UdpSettings(Fields transport) {
        send = size(transport, "udp_send_buffer");
        receive = size(transport, "udp_receive_buffer");
        for (String offload : List.of("gso", "gro")) {
            if (transport.has(offload) && transport.flag(offload)) {
                throw new Unsupported("transport: `" + offload + "` = true: Java's sockets do not have it");
            }
        }
    }

    private static int size(Fields transport, String name) {
        if (!transport.has(name)) {
            return 0;
        }
        long size = transport.count(name, 1);
        if (size > Integer.MAX_VALUE) {
            throw new Unsupported("transport: `" + name + "` = " + size + "; supported: up to " + Integer.MAX_VALUE);
        }
        return (int) size;
    }

    public void apply(DatagramSocket socket) throws SocketException {
        if (send > 0) {
            socket.setSendBufferSize(send);
        }
        if (receive > 0) {
            socket.setReceiveBufferSize(receive);
        }
        demand("udp_send_buffer", send, socket.getSendBufferSize());
        demand("udp_receive_buffer", receive, socket.getReceiveBufferSize());
    }

    private static void demand(String name, int wanted, int is) {
        if (wanted > 0 && wanted != is) {
            throw new Unsupported("transport: `" + name + "` = " + wanted + ": the kernel grants " + is);
        }
    }

    /** The active settings, read back from the socket. */
    public static Map<String, Object> configured(DatagramSocket socket) throws SocketException {
        return Map.of("udp_send_buffer", socket.getSendBufferSize(), "udp_receive_buffer", socket.getReceiveBufferSize(),
            "gso", false, "gro", false);
    }
}
