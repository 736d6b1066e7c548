package wirelab.netty;

import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOption;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.socket.SocketChannel;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpServerKeepAliveHandler;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2Settings;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslHandler;
import io.netty.handler.stream.ChunkedWriteHandler;
import java.io.IOException;
import java.nio.channels.ServerSocketChannel;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Protocol;
import wirelab.contract.ServerSpec;
import wirelab.net.TcpSettings;
import wirelab.server.Running;
import wirelab.server.Site;

/** HTTP/1.1 and HTTP/2 over TCP. */
final class TcpServer implements Running {
    /** Streams at once in a connection of HTTP/2, as other servers have it; Netty has no limit of its own. */
    private static final int STREAMS = 250;
    private static final int BACKLOG = 1024;

    private final Map<String, Object> configured = new ConcurrentHashMap<>();
    private final Protocol protocol;
    private final Site site;
    private final SslContext tls;
    /** Null in HTTP/1.1, which has none. */
    private final Http2Windows windows;
    private final EventLoopGroup loops;
    private final int port;

    TcpServer(ServerSpec spec, Site site) throws Failure {
        protocol = spec.protocol;
        this.site = site;
        tls = protocol.isSecure() ? ServerTls.overTcp(spec) : null;
        windows = protocol.multiplexes() ? new Http2Windows(spec.transport) : null;
        if (windows != null) {
            configured.putAll(windows.configured());
        }
        TcpSettings settings = new TcpSettings(spec.transport);
        ServerSocketChannel socket = socket(settings);
        int threads = Loops.wanted(spec.rest, Short.MAX_VALUE);
        configured.put("threads", threads);
        loops = Loops.start(threads);
        port = Loops.port(spec, new ServerBootstrap().group(loops).channelFactory(() -> new NioServerSocketChannel(socket))
            .option(ChannelOption.SO_BACKLOG, BACKLOG).childOption(ChannelOption.TCP_NODELAY, settings.noDelay())
            .childHandler(new ChannelInitializer<SocketChannel>() {
                @Override
                protected void initChannel(SocketChannel channel) {
                    begin(channel);
                }
            }).bind(spec.address, spec.port));
    }

    private ServerSocketChannel socket(TcpSettings settings) throws Failure {
        try {
            ServerSocketChannel socket = ServerSocketChannel.open();
            settings.apply(socket);
            configured.putAll(settings.configured(socket));
            return socket;
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making a socket: " + error.getMessage());
        }
    }

    private void begin(SocketChannel channel) {
        ChannelPipeline pipeline = channel.pipeline();
        if (tls != null) {
            SslHandler handler = tls.newHandler(channel.alloc());
            handler.setHandshakeTimeoutMillis(0); // the client has the deadline
            pipeline.addLast(handler);
        }
        if (!protocol.multiplexes()) {
            pipeline.addLast(new HttpServerCodec(), new HttpServerKeepAliveHandler());
            answer(channel);
            return;
        }
        // Both by prior knowledge: with TLS the handshake fails where anything else is negotiated.
        Http2Settings settings = windows.settings().maxConcurrentStreams(STREAMS);
        pipeline.addLast(Http2FrameCodecBuilder.forServer().initialSettings(settings).build(),
            new Http2MultiplexHandler(new ChannelInitializer<Channel>() {
                @Override
                protected void initChannel(Channel stream) {
                    stream.pipeline().addLast(new Http2StreamFrameToHttpObjectCodec(true));
                    answer(stream);
                }
            }), windows);
    }

    private void answer(Channel channel) {
        channel.pipeline().addLast(new ChunkedWriteHandler(), new SiteHandler(site));
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
