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
 * <p>It tells of the end of a stream as often as it is asked. quiche tells once, and has no such stream any more then. Jetty forgets what
 * it heard where the last frame is one that HTTP/3 does not know (RFC 9114, section 9), and where it reads no bytes, to learn of a reset;
 * it asks again, and would wait for ever or take the answer for a failure.
 *
 * <p>It has quiche answer what came. Jetty lets quiche send where a stream is read or written, and else at the next time-out: after a lost
 * packet no stream has anything to read, so none of the packets behind it would be acknowledged, and the peer would not learn of the loss.
 */
final class CarefulQuiche extends Quiche {
    private final Quiche own;
    /** The identifiers of streams that were read to their end; guarded by itself. */
    private final BitSet ended = new BitSet();
    /** Whether packets came that nothing was sent for. */
    private volatile boolean fed;
    private volatile QuicheSession session;

    CarefulQuiche(Quiche own) {
        this.own = own;
    }

    /** To be told of each session, since Jetty makes quiche's connection first and keeps it to itself. */
    static void opened(QuicheSession session) {
        try {
            Field quiche = QuicheSession.class.getDeclaredField("quiche");
            quiche.setAccessible(true);
            ((CarefulQuiche) quiche.get(session)).session = session;
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("a Jetty that is not the one this was written for", error);
        }
    }

    /** Asked and remembered in one go, since two threads of Jetty's may ask of one stream at once. */
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

    /** What Jetty asks last, when no stream has anything left to read. */
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
