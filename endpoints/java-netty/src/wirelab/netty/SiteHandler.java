package wirelab.netty;

import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.DefaultHttpContent;
import io.netty.handler.codec.http.DefaultHttpResponse;
import io.netty.handler.codec.http.DefaultLastHttpContent;
import io.netty.handler.codec.http.HttpChunkedInput;
import io.netty.handler.codec.http.HttpContent;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMessage;
import io.netty.handler.codec.http.HttpObject;
import io.netty.handler.codec.http.HttpRequest;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.LastHttpContent;
import wirelab.server.Reply;
import wirelab.server.Site;

/** Answers the requests of a connection of HTTP/1.1, or the one of a stream; Netty makes them look the same. */
final class SiteHandler extends SimpleChannelInboundHandler<HttpObject> {
    private final Site site;
    private Reply reply;
    private long arrival;

    SiteHandler(Site site) {
        this.site = site;
    }

    @Override
    protected void channelRead0(ChannelHandlerContext context, HttpObject part) {
        if (part.decoderResult().isFailure()) {
            context.close();
            return;
        }
        if (part instanceof HttpRequest request) {
            arrival = System.nanoTime();
            reply = site.reply(request.method().name(), request.uri());
            if (reply instanceof Reply.Echo) {
                DefaultHttpResponse header = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
                String size = request.headers().get(HttpHeaderNames.CONTENT_LENGTH);
                if (size != null) {
                    header.headers().set(HttpHeaderNames.CONTENT_LENGTH, size);
                }
                context.write(header);
            }
        }
        if (part instanceof HttpContent content) {
            body(context, content);
        }
    }

    private void body(ChannelHandlerContext context, HttpContent content) {
        boolean last = content instanceof LastHttpContent;
        if (reply instanceof Reply.Echo) {
            if (last) {
                site.count();
            }
            context.writeAndFlush(last
                ? new DefaultLastHttpContent(content.content().retain()) : new DefaultHttpContent(content.content().retain()));
        } else if (last) {
            site.count();
            answer(context);
        }
    }

    private void answer(ChannelHandlerContext context) {
        if (reply instanceof Reply.Document document) {
            whole(context, 200, document.body());
        } else if (reply instanceof Reply.Bytes bytes) {
            DefaultHttpResponse header = new DefaultHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK);
            length(header, bytes.size());
            context.write(header);
            context.writeAndFlush(new HttpChunkedInput(new PatternInput(bytes.size())));
        } else if (reply instanceof Reply.Delay delay) {
            site.after(arrival, delay.micros(), () -> context.executor().execute(() -> whole(context, 200, new byte[0])));
        } else if (reply instanceof Reply.Redirect redirect) {
            DefaultFullHttpResponse response = response(302, new byte[0]);
            response.headers().set(HttpHeaderNames.LOCATION, redirect.location());
            context.writeAndFlush(response);
        } else if (reply instanceof Reply.Status status) {
            whole(context, status.code(), new byte[0]);
        }
    }

    private static void whole(ChannelHandlerContext context, int status, byte[] body) {
        context.writeAndFlush(response(status, body));
    }

    private static DefaultFullHttpResponse response(int status, byte[] body) {
        DefaultFullHttpResponse response = new DefaultFullHttpResponse(
            HttpVersion.HTTP_1_1, HttpResponseStatus.valueOf(status), Unpooled.wrappedBuffer(body));
        length(response, body.length);
        return response;
    }

    private static void length(HttpMessage message, long size) {
        message.headers().set(HttpHeaderNames.CONTENT_LENGTH, Long.toString(size));
    }

    /** A client that does not read its echo is not read from either. */
    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) throws Exception {
        context.channel().config().setAutoRead(context.channel().isWritable());
        super.channelWritabilityChanged(context);
    }

    /** The client's to report. */
    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable error) {
        context.close();
    }
}
