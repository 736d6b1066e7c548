package wirelab.jetty;

import java.io.IOException;
import java.lang.reflect.Field;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import java.util.BitSet;
import java.util.List;
import org.eclipse.jetty.quic.quiche.Quiche;
import org.eclipse.jetty.quic.quiche.QuicheSession;

/**
 * A connection of quiche, with two things that Jetty 12.1.5 leaves out.
 *
 * <p>It reports the end of a stream at each question. quiche reports it once, and then forgets the stream. Jetty forgets
 * the end in two cases: if the last frame is unknown to HTTP/3 (RFC 9114, section 9), and if it reads no bytes, to notice
 * a reset. It asks again, and would wait for ever or treat the answer as a failure.
 *
 * <p>It has quiche acknowledge received packets. Jetty lets quiche send if a stream is read or written, or at the next
 * time-out. After a lost packet no stream has bytes to read. So the packets behind it would not be acknowledged, and the
 * peer would not notice the loss.
 */
final class CarefulQuiche extends Quiche {
    private final Quiche own;
    /** The identifiers of streams that were read to their end; guarded by itself. */
    private final BitSet ended = new BitSet();
    /** Whether packets came without a reply. */
    private volatile boolean fed;
    private volatile QuicheSession session;

    CarefulQuiche(Quiche own) {
        this.own = own;
    }

    /** Gets each session, because Jetty makes quiche's connection first and does not show it. */
    static void opened(QuicheSession session) {
        try {
            Field quiche = QuicheSession.class.getDeclaredField("quiche");
            quiche.setAccessible(true);
            ((CarefulQuiche) quiche.get(session)).session = session;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("a Jetty that is not the one this was written for", error);
        }
    }

    /** Asks and remembers in one step, because two threads of Jetty may ask for one stream at once. */
    @Override
    public int drainClearBytesForStream(long stream, ByteBuffer buffer, boolean[] last) throws IOException {
        int id = Math.toIntExact(stream);
        synchronized (ended) {
            if (ended.get(id)) {
                last[0] = true;
                return 0;
            }
            int read = own.drainClearBytesForStream(stream, buffer, last);
            if (last[0]) {
                ended.set(id);
            }
            return read;
        }
    }

    @Override
    protected List<Long> iterableStreamIds(boolean write) {
        return write ? own.writableStreamIds() : own.readableStreamIds();
    }

    @Override
    public int feedCipherBytes(ByteBuffer packet, SocketAddress local, SocketAddress peer) throws IOException {
        int taken = own.feedCipherBytes(packet, local, peer);
        fed = true;
        return taken;
    }

    @Override
    public int drainCipherBytes(ByteBuffer packet) throws IOException {
        return own.drainCipherBytes(packet);
    }

    @Override
    public boolean isConnectionClosed() {
        return own.isConnectionClosed();
    }

    @Override
    public boolean isConnectionEstablished() {
        return own.isConnectionEstablished();
    }

    @Override
    public long nextTimeout() {
        return own.nextTimeout();
    }

    @Override
    public void onTimeout() {
        own.onTimeout();
    }

    @Override
    public String getNegotiatedProtocol() {
        return own.getNegotiatedProtocol();
    }

    @Override
    public boolean close(long error, String reason) {
        return own.close(error, reason);
    }

    @Override
    public void dispose() {
        own.dispose();
    }

    @Override
    public boolean isDraining() {
        return own.isDraining();
    }

    @Override
    public int maxLocalStreams() {
        return own.maxLocalStreams();
    }

    @Override
    public long windowCapacity() {
        return own.windowCapacity();
    }

    @Override
    public long windowCapacity(long stream) throws IOException {
        return own.windowCapacity(stream);
    }

    @Override
    public void shutdownStream(long stream, boolean write, long error) throws IOException {
        own.shutdownStream(stream, write, error);
    }

    @Override
    public int feedClearBytesForStream(long stream, ByteBuffer buffer, boolean last) throws IOException {
        return own.feedClearBytesForStream(stream, buffer, last);
    }

    @Override
    public boolean isStreamFinished(long stream) {
        return own.isStreamFinished(stream);
    }

    /** Jetty's last question, when no stream has bytes left to read. */
    @Override
    public CloseInfo getRemoteCloseInfo() {
        CloseInfo closed = own.getRemoteCloseInfo();
        QuicheSession open = session;
        if (closed == null && fed && open != null) {
            fed = false;
            open.flush();
        }
        return closed;
    }

    @Override
    public CloseInfo getLocalCloseInfo() {
        return own.getLocalCloseInfo();
    }

    @Override
    public byte[] getPeerCertificate() {
        return own.getPeerCertificate();
    }
}
