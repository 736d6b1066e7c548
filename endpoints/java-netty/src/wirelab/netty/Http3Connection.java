package wirelab.netty;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelInitializer;
import io.netty.handler.codec.http3.Http3;
import io.netty.handler.codec.http3.Http3ClientConnectionHandler;
import io.netty.handler.codec.http3.Http3FrameToHttpObjectCodec;
import io.netty.handler.codec.quic.QLogConfiguration;
import io.netty.handler.codec.quic.QuicChannel;
import io.netty.handler.codec.quic.QuicChannelBootstrap;
import io.netty.handler.codec.quic.QuicChannelOption;
import io.netty.handler.codec.quic.QuicConnectionCloseEvent;
import io.netty.handler.codec.quic.QuicStreamChannel;
import io.netty.handler.codec.quic.QuicStreamLimitChangedEvent;
import io.netty.handler.codec.quic.QuicStreamType;
import io.netty.util.concurrent.Future;
import java.util.ArrayDeque;
import wirelab.client.Connection;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;
import wirelab.net.TlsFacts;

/** HTTP/3: a stream for each request. */
final class Http3Connection implements Connection {
    /** H3_NO_ERROR and H3_REQUEST_CANCELLED (RFC 9114, section 8.1). */
    private static final int NO_ERROR = 0x100;
    private static final int CANCELLED = 0x10c;

    private final QuicTransport transport;
    /** Requests without credit for a stream yet; used by the connection's thread alone. */
    private final ArrayDeque<Exchange> waiting = new ArrayDeque<>();
    private volatile QuicChannel channel;
    private volatile Handshake handshake;
    private volatile boolean closed;
    /** Why the connection ended; null: not known, or not yet. */
    private volatile Failure ending;

    Http3Connection(QuicTransport transport) {
        this.transport = transport;
    }

    @Override
    public void open(Opening opening) {
        QuicChannelBootstrap bootstrap = QuicChannel.newBootstrap(transport.socket())
            .remoteAddress(transport.addresses.next()).handler(new ChannelInitializer<QuicChannel>() {
                @Override
                protected void initChannel(QuicChannel made) {
                    channel = made;
                    made.pipeline().addLast(new Http3ClientConnectionHandler(), new End());
                }
            });
        QLogConfiguration qlog = transport.settings.qlog();
        if (qlog != null) {
            bootstrap.option(QuicChannelOption.QLOG, qlog);
        }
        bootstrap.connect().addListener((Future<QuicChannel> done) -> connected(opening, done));
    }

    private void connected(Opening opening, Future<QuicChannel> done) {
        long now = System.nanoTime();
        Object judgement = channel == null ? null : transport.trust.judgement(channel.sslEngine());
        if (!done.isSuccess()) {
            Throwable cause = judgement instanceof Throwable rejected ? rejected : done.cause();
            opening.failed(failure("connecting to " + transport.spec.address + " port " + transport.spec.port, cause));
            return;
        }
        if (judgement != QuicTrust.ACCEPTED) {
            opening.failed(ErrorKind.TLS, "the server presented no certificate, although nothing was resumed");
            return;
        }
        handshake = Handshake.FULL;
        if (!transport.configured.containsKey("cipher")) {
            TlsFacts.add(transport.configured, channel.sslEngine().getSession(), channel.sslEngine().getApplicationProtocol());
        }
        if (closed) {
            channel.close();
        }
        opening.opened(now);
    }

    private Failure failure(String attempt, Throwable cause) {
        Failure known = ending;
        return known != null ? known : Faults.of(attempt, cause);
    }

    @Override
    public void send(Exchange exchange) {
        run(() -> request(exchange));
    }

    private void request(Exchange exchange) {
        if (exchange.isSettled()) {
            return;
        }
        // Netty counts even a stream that it cannot open, so it is not tried.
        if (channel.isActive() && channel.peerAllowedStreams(QuicStreamType.BIDIRECTIONAL) == 0) {
            waiting.add(exchange);
            return;
        }
        Http3.newRequestStream(channel, new ChannelInitializer<QuicStreamChannel>() {
            @Override
            protected void initChannel(QuicStreamChannel made) {
                ResponseHandler response = new ResponseHandler(transport.requests.attempt(), Http3Connection.this::end);
                response.expect(exchange);
                made.pipeline().addLast(new Http3FrameToHttpObjectCodec(false));
                transport.requests.prepare(made.pipeline());
                made.pipeline().addLast(response);
            }
        }).addListener((Future<QuicStreamChannel> opened) -> {
            if (opened.isSuccess()) {
                exchange.attachment = opened.getNow();
                transport.requests.send(opened.getNow(), exchange);
            } else {
                exchange.fail(failure("opening a stream", opened.cause()));
            }
        });
    }

    /** Why a stream ended with its connection. */
    private Failure end() {
        Failure known = ending;
        if (known == null && channel.isTimedOut()) {
            return new Failure(ErrorKind.TIMEOUT, "the connection timed out");
        }
        return known;
    }

    private void run(Runnable step) {
        if (channel.eventLoop().inEventLoop()) {
            step.run();
        } else {
            channel.eventLoop().execute(step);
        }
    }

    @Override
    public void cancel(Exchange exchange) {
        run(() -> {
            waiting.remove(exchange);
            if (exchange.attachment instanceof QuicStreamChannel made) {
                made.shutdown(CANCELLED);
            }
        });
    }

    @Override
    public boolean isOpen() {
        return !closed && channel.isActive();
    }

    @Override
    public Handshake handshake() {
        return handshake;
    }

    @Override
    public void close(Runnable then) {
        closed = true;
        QuicChannel made = channel;
        if (made == null) {
            then.run();
        } else {
            made.close(true, NO_ERROR, Unpooled.EMPTY_BUFFER).addListener(done -> then.run());
        }
    }

    /** Events of the whole connection. */
    private final class End extends ChannelInboundHandlerAdapter {
        @Override
        public void userEventTriggered(ChannelHandlerContext context, Object event) throws Exception {
            if (event instanceof QuicStreamLimitChangedEvent) {
                for (int i = waiting.size(); i > 0; i--) {
                    request(waiting.poll());
                }
            } else if (event instanceof QuicConnectionCloseEvent close) {
                ErrorKind kind = close.isTlsError() ? ErrorKind.TLS : ErrorKind.RESET;
                ending = new Failure(kind, "the server closed the connection: " + close);
            }
            super.userEventTriggered(context, event);
        }

        @Override
        public void channelInactive(ChannelHandlerContext context) throws Exception {
            Failure known = end();
            for (Exchange exchange : waiting) {
                exchange.fail(known != null ? known : new Failure(ErrorKind.RESET, "the connection was closed"));
            }
            waiting.clear();
            super.channelInactive(context);
        }

        @Override
        public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
            ending = Faults.of("HTTP/3 with " + transport.spec.address, error);
            context.close();
        }
    }
}
