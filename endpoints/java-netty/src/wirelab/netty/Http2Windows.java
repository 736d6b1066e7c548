package wirelab.netty;

import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.handler.codec.http2.DefaultHttp2WindowUpdateFrame;
import io.netty.handler.codec.http2.Http2ConnectionPrefaceAndSettingsFrameWrittenEvent;
import io.netty.handler.codec.http2.Http2Settings;
import java.util.Map;
import wirelab.contract.Fields;
import wirelab.contract.Unsupported;

/** Credit for bodies in HTTP/2. A connection's credit is enlarged at its beginning, because HTTP/2 has no setting for it. */
@ChannelHandler.Sharable
final class Http2Windows extends ChannelInboundHandlerAdapter {
    /** The initial window of streams and connections (RFC 9113, section 6.9.2), which Netty does not change. */
    private static final int BEGINNING = 65_535;

    private final int stream;
    private final int connection;

    /** Takes the settings that it honours. */
    Http2Windows(Fields transport) {
        stream = window(transport, "stream_window", 1);
        connection = window(transport, "connection_window", BEGINNING); // granted credit cannot be taken back
    }

    private static int window(Fields transport, String name, int least) {
        if (!transport.has(name)) {
            return BEGINNING;
        }
        long window = transport.count(name, 1);
        if (window < least || window > Integer.MAX_VALUE) {
            throw new Unsupported("transport: `" + name + "` = " + window + " cannot be had in HTTP/2");
        }
        return (int) window;
    }

    Http2Settings settings() {
        return Http2Settings.defaultSettings().initialWindowSize(stream);
    }

    Map<String, Object> configured() {
        return Map.of("stream_window", stream, "connection_window", connection);
    }

    @Override
    public void userEventTriggered(ChannelHandlerContext context, Object event) throws Exception {
        if (event instanceof Http2ConnectionPrefaceAndSettingsFrameWrittenEvent && connection > BEGINNING) {
            context.writeAndFlush(new DefaultHttp2WindowUpdateFrame(connection - BEGINNING));
        }
        super.userEventTriggered(context, event);
    }
}
