package wirelab.netty;

import io.netty.channel.Channel;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.ChannelOutboundHandlerAdapter;
import io.netty.channel.ChannelPipeline;
import io.netty.channel.ChannelPromise;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http2.Http2FrameCodecBuilder;
import io.netty.handler.codec.http2.Http2GoAwayFrame;
import io.netty.handler.codec.http2.Http2MultiplexHandler;
import io.netty.handler.codec.http2.Http2StreamChannel;
import io.netty.handler.codec.http2.Http2StreamChannelBootstrap;
import io.netty.handler.codec.http2.Http2StreamFrameToHttpObjectCodec;
import io.netty.util.concurrent.Future;
import java.io.IOException;
import java.nio.channels.ClosedChannelException;
import wirelab.client.Exchange;
import wirelab.contract.Failure;

/** HTTP/2: a stream for each request. */
final class Http2Connection extends TcpConnection {
    /** Servers must not open streams: nothing was promised to be taken. */
    private static final ChannelHandler PUSHED = new ChannelInitializer<Channel>() {
        @Override
        protected void initChannel(Channel stream) {
            stream.close();
        }
    };

    private final ChannelHandler stream = new ChannelInitializer<Channel>() {
        @Override
        protected void initChannel(Channel made) {
            made.pipeline().addLast(new Http2StreamFrameToHttpObjectCodec(false));
            transport.requests.prepare(made.pipeline());
        }
    };
    private volatile Http2StreamChannelBootstrap streams;
    /** Why the connection ended; null: not known, or not yet. */
    private volatile Failure ending;

    Http2Connection(TcpTransport transport) throws Failure {
        super(transport);
    }

    @Override
    void speak(ChannelPipeline pipeline) {
        // Streams beyond what the server allows wait for others to end.
        pipeline.addLast(new Writes(), Http2FrameCodecBuilder.forClient().initialSettings(transport.windows.settings().pushEnabled(false))
            .encoderEnforceMaxConcurrentStreams(true).build(), new Http2MultiplexHandler(PUSHED), transport.windows, new End());
        streams = new Http2StreamChannelBootstrap(pipeline.channel()).handler(stream);
    }

    @Override
    void request(Channel channel, Exchange exchange) {
        streams.open().addListener((Future<Http2StreamChannel> opened) -> {
            if (!opened.isSuccess()) {
                exchange.fail(Faults.of("opening a stream", opened.cause()));
                return;
            }
            Http2StreamChannel made = opened.getNow();
            exchange.attachment = made;
            ResponseHandler response = new ResponseHandler(transport.requests.attempt(), () -> ending);
            response.expect(exchange);
            made.pipeline().addLast(response);
            transport.requests.send(made, exchange);
        });
    }

    @Override
    public void cancel(Exchange exchange) {
        run(() -> {
            if (exchange.attachment instanceof Http2StreamChannel made) {
                made.close(); // with RST_STREAM
            }
        });
    }

    /** Below the codec, which does not tell of its own frames: a reset may show first when one of those is written. */
    private final class Writes extends ChannelOutboundHandlerAdapter {
        @Override
        public void write(ChannelHandlerContext context, Object bytes, ChannelPromise written) throws Exception {
            super.write(context, bytes, written.unvoid().addListener(done -> {
                // A closed channel says no more than that it is closed.
                if (ending == null && done.cause() instanceof IOException error && !(error instanceof ClosedChannelException)) {
                    ending = Faults.of("HTTP/2 with " + transport.spec.address, error);
                }
            }));
        }
    }

    /** Events of the whole connection. */
    private final class End extends SimpleChannelInboundHandler<Object> {
        @Override
        protected void channelRead0(ChannelHandlerContext context, Object frame) {
            if (frame instanceof Http2GoAwayFrame) {
                retire();
            }
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
            ending = Faults.of("HTTP/2 with " + transport.spec.address, error);
            context.close();
        }
    }
}
