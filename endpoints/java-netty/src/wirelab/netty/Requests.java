package wirelab.netty;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.DefaultFullHttpRequest;
import io.netty.handler.codec.http.DefaultHttpHeaders;
import io.netty.handler.codec.http.DefaultHttpRequest;
import io.netty.handler.codec.http.EmptyHttpHeaders;
import io.netty.handler.codec.http.HttpChunkedInput;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpHeaders;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.stream.ChunkedWriteHandler;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import wirelab.Pattern;
import wirelab.client.Exchange;
import wirelab.contract.ClientSpec;
import wirelab.contract.Unsupported;

/** The request of the spec, made anew each time: Netty's codecs write into the header that they are given. */
final class Requests {
    /** Fields of the connection, which the codecs write, and not in every version. */
    private static final Set<String> OF_THE_CODEC = Set.of(
        "connection", "content-length", "host", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade");

    private final String attempt;
    private final HttpMethod method;
    private final String path;
    private final long size;
    private final HttpHeaders header = new DefaultHttpHeaders();

    Requests(ClientSpec spec) {
        attempt = spec.method + " " + spec.path;
        method = HttpMethod.valueOf(spec.method);
        path = spec.path;
        size = spec.bodySize;
        String name = spec.serverName.contains(":") ? "[" + spec.serverName + "]" : spec.serverName;
        header.set(HttpHeaderNames.HOST, name + ":" + spec.port);
        if (size > 0 || !spec.method.equals("GET") && !spec.method.equals("HEAD")) {
            header.set(HttpHeaderNames.CONTENT_LENGTH, Long.toString(size));
        }
        for (Map.Entry<String, String> field : spec.headers) {
            if (OF_THE_CODEC.contains(field.getKey().toLowerCase(Locale.ROOT))) {
                throw new Unsupported("spec.request: the header field `" + field.getKey() + "`, which is Netty's to set");
            }
            header.add(field.getKey(), field.getValue());
        }
    }

    /** Adds what a channel needs to send this request's body in pieces. */
    void prepare(ChannelPipeline pipeline) {
        if (size > Pattern.PIECE) {
            pipeline.addLast(new ChunkedWriteHandler());
        }
    }

    /** Sends it, from the channel's own thread. */
    void send(Channel channel, Exchange exchange) {
        ChannelFuture sent;
        if (size <= Pattern.PIECE) {
            ByteBuf body = size == 0 ? Unpooled.EMPTY_BUFFER : Unpooled.wrappedBuffer(Pattern.directPiece(0, size));
            sent = channel.writeAndFlush(new DefaultFullHttpRequest(
                HttpVersion.HTTP_1_1, method, path, body, header.copy(), EmptyHttpHeaders.INSTANCE));
        } else {
            channel.write(new DefaultHttpRequest(HttpVersion.HTTP_1_1, method, path, header.copy()));
            sent = channel.writeAndFlush(new HttpChunkedInput(new PatternInput(size)));
        }
        sent.addListener(done -> {
            if (!done.isSuccess()) {
                exchange.fail(Faults.of(attempt, done.cause()));
            }
        });
    }

    String attempt() {
        return attempt;
    }
}
