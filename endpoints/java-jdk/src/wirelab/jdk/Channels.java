package wirelab.jdk;

import java.io.IOException;
import java.net.ProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.nio.channels.Pipe;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelector;
import java.nio.channels.spi.SelectorProvider;

/**
 * Sees every socket that HttpClient opens, to apply settings and read them back. HttpClient itself does not show them.
 * Everything else is the platform's own provider.
 */
public final class Channels extends SelectorProvider {
    /** The connection that opens sockets in this thread; null: none that observes them. */
    static final ThreadLocal<JdkConnection> OPENING = new ThreadLocal<>();

    private final SelectorProvider own = platform();

    /** The default of `SelectorProvider.provider()`. */
    private static SelectorProvider platform() {
        try {
            Class<?> provider = Class.forName("sun.nio.ch.DefaultSelectorProvider");
            var get = provider.getMethod("get");
            get.setAccessible(true);
            return (SelectorProvider) get.invoke(null);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("finding the platform's provider of selectors: " + error, error);
        }
    }

    @Override
    public SocketChannel openSocketChannel() throws IOException {
        SocketChannel channel = own.openSocketChannel();
        JdkConnection connection = OPENING.get();
        if (connection != null) {
            connection.socket(channel);
        }
        return channel;
    }

    @Override
    public DatagramChannel openDatagramChannel() throws IOException {
        return own.openDatagramChannel();
    }

    @Override
    public DatagramChannel openDatagramChannel(ProtocolFamily family) throws IOException {
        return own.openDatagramChannel(family);
    }

    @Override
    public Pipe openPipe() throws IOException {
        return own.openPipe();
    }

    @Override
    public AbstractSelector openSelector() throws IOException {
        return own.openSelector();
    }

    @Override
    public ServerSocketChannel openServerSocketChannel() throws IOException {
        return own.openServerSocketChannel();
    }
}
