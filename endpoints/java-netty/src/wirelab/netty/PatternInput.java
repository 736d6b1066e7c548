package wirelab.netty;

import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufAllocator;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.stream.ChunkedInput;
import wirelab.Pattern;

/** So many bytes of the pattern, made as the channel takes them. */
final class PatternInput implements ChunkedInput<ByteBuf> {
    private final long size;
    private long sent;

    PatternInput(long size) {
        this.size = size;
    }

    @Override
    public ByteBuf readChunk(ByteBufAllocator allocator) {
        if (isEndOfInput()) {
            return null;
        }
        ByteBuf piece = Unpooled.wrappedBuffer(Pattern.directPiece(sent, size - sent));
        sent += piece.readableBytes();
        return piece;
    }

    @Override
    @Deprecated
    public ByteBuf readChunk(ChannelHandlerContext context) {
        return readChunk(context.alloc());
    }

    @Override
    public boolean isEndOfInput() {
        return sent == size;
    }

    @Override
    public long length() {
        return size;
    }

    @Override
    public long progress() {
        return sent;
    }

    @Override
    public void close() {
        sent = size;
    }
}
