package wirelab.net;

import java.io.IOException;
import java.net.StandardSocketOptions;
import java.nio.channels.NetworkChannel;
import java.nio.channels.SelectableChannel;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.util.List;
import java.util.Map;
import wirelab.contract.Fields;
import wirelab.contract.Unsupported;

/** The settings that every TCP socket of Java can have: congestion control and Nagle's algorithm. */
public final class TcpSettings {
    private final String congestion;
    private final boolean noDelay;

    /** Takes the settings that it honours. */
    public TcpSettings(Fields transport) {
        congestion = transport.has("congestion")
            ? transport.choose("congestion", List.of("cubic", "bbr", "reno")) : null;
        noDelay = !transport.has("no_delay") || transport.flag("no_delay");
        if (transport.has("fast_open") && transport.flag("fast_open")) {
            throw new Unsupported("transport: `fast_open` = true: Java's sockets have no TCP Fast Open");
        }
    }

    public boolean noDelay() {
        return noDelay;
    }

    /** For libraries that always turn Nagle's algorithm off. */
    public void demandNoDelay(String library) {
        if (!noDelay) {
            throw new Unsupported("transport: `no_delay` = false: " + library + " always sets TCP_NODELAY");
        }
    }

    /** Refuses a setting that the kernel lacks, tried on a temporary socket. */
    public Map<String, Object> probe() throws IOException {
        try (SocketChannel socket = SocketChannel.open()) {
            apply(socket);
            return configured(socket);
        }
    }

    /** Accepted connections inherit the congestion control of a listening socket. */
    public void apply(SelectableChannel channel) throws IOException {
        if (congestion != null && !Sockets.setCongestion(channel, congestion)) {
            throw new Unsupported("transport: `congestion` = `" + congestion + "`: the kernel does not have it");
        }
        if (!(channel instanceof ServerSocketChannel)) {
            ((NetworkChannel) channel).setOption(StandardSocketOptions.TCP_NODELAY, noDelay);
        }
    }

    /** The active settings, read back from the kernel. */
    public Map<String, Object> configured(SelectableChannel channel) throws IOException {
        return Map.of("congestion", Sockets.congestion(channel), "fast_open", false, "no_delay",
            channel instanceof SocketChannel socket ? socket.getOption(StandardSocketOptions.TCP_NODELAY) : noDelay);
    }
}
