package wirelab.netty;

import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpResponse;
import io.netty.handler.codec.http.HttpStatusClass;
import io.netty.handler.codec.http.LastHttpContent;
import io.netty.handler.codec.http2.Http2ResetFrame;
import java.util.function.Supplier;
import wirelab.client.Exchange;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/**
 * Reports the progress of a request to its exchange. A connection of HTTP/1.1 has one handler for all requests; in HTTP/2 and
 * HTTP/3 each stream has its own. Used by the channel's thread alone.
 */
final class ResponseHandler extends SimpleChannelInboundHandler<Object> {
    private final String attempt;
    /** Why the connection ended, if that is known; null: the peer closed it in good order. */
    private final Supplier<Failure> ending;
    private Exchange exchange;

    ResponseHandler(String attempt, Supplier<Failure> ending) {
        this.attempt = attempt;
        this.ending = ending;
    }

    /** The responses to come are this one's. */
    void expect(Exchange next) {
        exchange = next;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, Object part) {
        if (exchange == null) {
            return; // of a request that was given up, or of none
        }
        if (part instanceof HttpObject object && object.decoderResult().isFailure()) {
            Failure failure = Faults.of(attempt, object.decoderResult().cause());
            // The codec of HTTP/1.1 throws exceptions of many classes, which all mean this.
            fail(failure.kind == ErrorKind.OTHER ? new Failure(ErrorKind.PROTOCOL, failure.getMessage()) : failure);
            context.close();
            return;
        }
        if (part instanceof HttpResponse response && response.status().codeClass() != HttpStatusClass.INFORMATIONAL) {
            exchange.firstByte(System.nanoTime());
            exchange.status(response.status().code());
        }
        if (part instanceof HttpContent content && exchange.status() != 0) {
            if (content.content().isReadable()) {
                exchange.body(content.content().nioBuffer());
            }
            if (content instanceof LastHttpContent) {
                long now = System.nanoTime();
                Exchange ended = exchange;
                exchange = null; // it may start the next request
                ended.complete(now);
            }
        }
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) throws Exception {
        if (event instanceof Http2ResetFrame reset) {
            fail(new Failure(ErrorKind.RESET, attempt + ": the server reset the stream, with code " + reset.errorCode()));
        }
        super.userEventTriggered(context, event);
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) throws Exception {
        if (exchange != null) {
            Failure known = ending.get();
            fail(known != null ? known
                : new Failure(ErrorKind.TRUNCATED, attempt + ": the connection ended before the response was complete"));
        }
        super.channelInactive(context);
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
        fail(Faults.of(attempt, error));
        context.close();
    }

    private void fail(Failure failure) {
        Exchange ended = exchange;
        exchange = null;
        if (ended != null) {
            ended.fail(failure);
        }
    }
}
