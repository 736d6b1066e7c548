package wirelab.jetty;

import java.nio.ByteBuffer;
import org.eclipse.jetty.client.Request;
import org.eclipse.jetty.io.Content;
import wirelab.Pattern;

/** The body of a request: pieces of the pattern, made as they are asked for. */
final class PatternContent implements Request.Content {
    private final long size;
    private long read;
    private Throwable failure;

    PatternContent(long size) {
        this.size = size;
    }

    @Override
    public long getLength() {
        return size;
    }

    @Override
    public Content.Chunk read() {
        if (failure != null) {
            return Content.Chunk.from(failure);
        }
        if (read == size) {
            return Content.Chunk.EOF;
        }
        ByteBuffer piece = Pattern.piece(read, size - read);
        read += piece.remaining();
        return Content.Chunk.from(piece, read == size);
    }

    @Override
    public void demand(Runnable ready) {
        ready.run(); // there is always more
    }

    @Override
    public void fail(Throwable why) {
        failure = why;
    }
}
