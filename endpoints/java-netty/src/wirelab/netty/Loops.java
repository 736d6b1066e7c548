package wirelab.netty;

import io.netty.channel.ChannelFuture;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.nio.NioIoHandler;
import java.net.InetSocketAddress;
import java.util.concurrent.TimeUnit;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Fields;
import wirelab.contract.ServerSpec;
import wirelab.contract.Unsupported;

/** Netty's threads, each an event loop. */
final class Loops {
    private static final long ENDING_MS = 1000;

    private Loops() {
    }

    /** As many as the spec says, at most so many; by default one for each processor, since none of them waits. */
    static int wanted(Fields spec, int most) {
        if (!spec.has("threads")) {
            return Math.min(most, Runtime.getRuntime().availableProcessors());
        }
        long threads = spec.count("threads", 1);
        if (threads > most) {
            throw new Unsupported("spec: `threads` = " + threads + "; supported: up to " + most);
        }
        return (int) threads;
    }

    static EventLoopGroup start(int threads) {
        return new MultiThreadIoEventLoopGroup(threads, NioIoHandler.newFactory());
    }

    /** The port that was bound. */
    static int port(ServerSpec spec, ChannelFuture binding) throws Failure {
        binding.awaitUninterruptibly();
        if (!binding.isSuccess()) {
            throw new Failure(ErrorKind.OTHER,
                "binding " + spec.address + " port " + spec.port + ": " + binding.cause().getMessage());
        }
        return ((InetSocketAddress) binding.channel().localAddress()).getPort();
    }

    /** Closes all channels and waits, because qlog files are complete only then. */
    static void stop(EventLoopGroup loops) {
        loops.shutdownGracefully(0, 0, TimeUnit.MILLISECONDS).awaitUninterruptibly(ENDING_MS);
    }
}
