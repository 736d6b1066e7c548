package wirelab.netty;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.socket.nio.NioDatagramChannel;
import io.netty.handler.codec.http3.Http3;
import io.netty.handler.codec.http3.Http3FrameToHttpObjectCodec;
import io.netty.handler.codec.http3.Http3ServerConnectionHandler;
import io.netty.handler.codec.quic.QLogConfiguration;
import io.netty.handler.codec.quic.QuicChannel;
import io.netty.handler.codec.quic.QuicChannelOption;
import io.netty.handler.codec.quic.QuicServerCodecBuilder;
import io.netty.handler.codec.quic.QuicSslContext;
import io.netty.handler.codec.quic.QuicStreamChannel;
import io.netty.handler.stream.ChunkedWriteHandler;
import java.io.IOException;
import java.net.Inet6Address;
import java.net.StandardProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.ServerSpec;
import wirelab.server.Running;
import wirelab.server.Site;

/** HTTP/3: quiche below, Netty's codec above. */
final class QuicServer implements Running {
    /** Streams at once in a connection, as other servers have it; Netty allows none by default. */
    private static final int STREAMS = 100;

    private final Map<String, Object> configured = new ConcurrentHashMap<>();
    private final EventLoopGroup loops;
    private final int port;

    QuicServer(ServerSpec spec, Site site) throws Failure {
        QuicSettings settings = new QuicSettings(spec.transport, spec.rest);
        // A socket has one event loop, and all connections are of one socket.
        int threads = Loops.wanted(spec.rest, 1);
        configured.put("threads", threads);
        QuicSslContext tls = ServerTls.overQuic(spec);
        QuicServerCodecBuilder codec = settings.apply(Http3.newQuicServerCodecBuilder())
            .sslContext(tls).initialMaxStreamsBidirectional(STREAMS).handler(connections(site, spec.resumption ? null : tls));
        QLogConfiguration qlog = settings.qlog();
        if (qlog != null) {
            codec.option(QuicChannelOption.QLOG, qlog);
        }
        DatagramChannel socket = socket(spec, settings);
        ChannelHandler made = codec.build();
        loops = Loops.start(threads);
        port = Loops.port(spec, new Bootstrap().group(loops).channelFactory(() -> new NioDatagramChannel(socket)).handler(made)
            .bind(spec.address, spec.port));
    }

    /** `unresumed`: the context whose tickets must be useless; null: tickets may resume. */
    private static ChannelHandler connections(Site site, QuicSslContext unresumed) {
        return new ChannelInitializer<QuicChannel>() {
            @Override
            protected void initChannel(QuicChannel connection) {
                if (unresumed != null) {
                    ServerTls.forgetTickets(unresumed);
                }
                connection.pipeline().addLast(new Http3ServerConnectionHandler(new ChannelInitializer<QuicStreamChannel>() {
                    @Override
                    protected void initChannel(QuicStreamChannel stream) {
                        stream.pipeline().addLast(
                            new Http3FrameToHttpObjectCodec(true), new ChunkedWriteHandler(), new SiteHandler(site));
                    }
                }));
            }
        };
    }

    private DatagramChannel socket(ServerSpec spec, QuicSettings settings) throws Failure {
        try {
            DatagramChannel socket = DatagramChannel.open(
                spec.address instanceof Inet6Address ? StandardProtocolFamily.INET6 : StandardProtocolFamily.INET);
            settings.apply(socket.socket());
            configured.putAll(settings.configured(socket.socket()));
            return socket;
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making a socket: " + error.getMessage());
        }
    }

    @Override
    public int port() {
        return port;
    }

    @Override
    public Map<String, Object> configured() {
        return configured;
    }

    @Override
    public void stop() {
        Loops.stop(loops);
    }
}
