package wirelab.kwik;

import java.io.FilterOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.concurrent.atomic.AtomicInteger;
import tech.kwik.core.stream.SendBuffer;

/**
 * A stream of kwik that sends all bytes written to it. kwik 0.10.8 hands a request to send to its sender and counts it
 * only then. A faster sender finds one too few, expects another request, and leaves the rest of the buffer unsent. The
 * next write repairs that; after the last write the peer would wait for ever. This class repairs it then.
 */
final class SureOutput extends FilterOutputStream {
    /** Repeated requests can be lost in the same way; a superfluous one finds nothing to send. */
    private static final int TRIES = 3;
    /** Half of what kwik's buffer holds: a write of more would wait within kwik. */
    private static final int PIECE = 25_600;

    private static final Field QUEUED;
    private static final Field BUFFER;
    private static final Method REQUEST;

    static {
        try {
            Class<?> stream = Class.forName("tech.kwik.core.stream.StreamOutputStreamImpl");
            QUEUED = stream.getDeclaredField("sendRequestsQueued");
            BUFFER = stream.getDeclaredField("sendBuffer");
            REQUEST = stream.getDeclaredMethod("scheduleSendStreamFrameRequest", boolean.class);
            QUEUED.setAccessible(true);
            BUFFER.setAccessible(true);
            REQUEST.setAccessible(true);
        } catch (ReflectiveOperationException another) {
            throw new ExceptionInInitializerError(another);
        }
    }

    SureOutput(OutputStream kwiks) {
        super(kwiks);
    }

    @Override
    public void write(byte[] bytes, int offset, int length) throws IOException {
        for (int sent = 0, piece; sent < length; sent += piece) {
            piece = Math.min(PIECE, length - sent);
            out.write(bytes, offset + sent, piece);
            request();
        }
    }

    /** Without the flush of its parent, which kwik refuses where the stream is closed. */
    @Override
    public void close() throws IOException {
        out.close();
        request();
    }

    /** Asks kwik to send the remaining bytes, if nothing else will. */
    private void request() throws IOException {
        try {
            AtomicInteger queued = (AtomicInteger) QUEUED.get(out);
            SendBuffer buffer = (SendBuffer) BUFFER.get(out);
            for (int i = 0; i < TRIES && queued.get() == 0 && buffer.hasData(); i++) {
                REQUEST.invoke(out, true);
            }
        } catch (ReflectiveOperationException error) {
            throw new IOException("asking kwik to send the rest of a stream: " + error, error);
        }
    }
}
