package wirelab.netty;

import io.netty.channel.EventLoopGroup;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import wirelab.client.Addresses;
import wirelab.client.Transport;
import wirelab.contract.ClientSpec;

/** The common part of clients over TCP and over QUIC. */
abstract class NettyTransport implements Transport {
    final ClientSpec spec;
    final Addresses addresses;
    final Requests requests;
    final EventLoopGroup loops;
    final Map<String, Object> configured = new ConcurrentHashMap<>();

    NettyTransport(ClientSpec spec) {
        this.spec = spec;
        addresses = new Addresses(spec);
        requests = new Requests(spec);
        int threads = Loops.wanted(spec.rest, Short.MAX_VALUE);
        configured.put("threads", threads);
        loops = Loops.start(threads);
    }

    @Override
    public final Map<String, Object> configured() {
        return configured;
    }
}
