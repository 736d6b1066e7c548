package wirelab.client;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;

/**
 * A request under way. The library reports its events, from any thread. The first end counts: an event after a passed
 * deadline has no effect.
 */
public final class Exchange {
    /** A time that did not happen. */
    public static final long NEVER = Long.MIN_VALUE;

    private static final AtomicIntegerFieldUpdater<Exchange> SETTLED =
        AtomicIntegerFieldUpdater.newUpdater(Exchange.class, "settled");

    final Lane lane;
    final long intended;
    final long start;
    /** Only the check request hashes. */
    final MessageDigest digest;
    /** Whether it ends when the connection is there, without a request. */
    boolean onlyConnects;
    boolean opened;
    volatile boolean connecting;
    long connected = NEVER;
    long ready = NEVER;
    long firstByte = NEVER;
    long end = NEVER;
    long bytesIn;
    long bytesOut;
    int status;
    int connection;
    Handshake handshake;
    Failure failure;
    /** For the library: its own data of a request. */
    public Object attachment;
    private volatile int settled;

    Exchange(Lane lane, long intended, long start, MessageDigest digest) {
        this.lane = lane;
        this.intended = intended;
        this.start = start;
        this.digest = digest;
    }

    /** When it started. */
    public long start() {
        return start;
    }

    /** The transport of its connection was connected; for libraries that connect with the first request. */
    public void connected(long at, boolean inClearText) {
        connected = at;
        connecting = connecting && !inClearText;
    }

    /** The handshake of its connection was complete; for libraries that connect with the first request. */
    public void ready(long at, Handshake proven) {
        ready = at;
        handshake = proven;
        connecting = false;
    }

    /** The first byte of the response was there. */
    public void firstByte(long at) {
        if (firstByte == NEVER) {
            firstByte = at;
        }
    }

    public void status(int code) {
        status = code;
    }

    /** 0: none yet. */
    public int status() {
        return status;
    }

    /** A piece of the response's body; it is consumed only to hash it. */
    public void body(ByteBuffer piece) {
        bytesIn += piece.remaining();
        if (digest != null) {
            digest.update(piece);
        }
    }

    public void body(byte[] piece, int offset, int length) {
        bytesIn += length;
        if (digest != null) {
            digest.update(piece, offset, length);
        }
    }

    public long bytesIn() {
        return bytesIn;
    }

    /** The response is complete. */
    public void complete(long at) {
        if (SETTLED.compareAndSet(this, 0, 1)) {
            end = at;
            lane.settled(this);
        }
    }

    public void fail(ErrorKind kind, String message) {
        fail(new Failure(kind, message));
    }

    public void fail(Failure why) {
        if (SETTLED.compareAndSet(this, 0, 1)) {
            end = System.nanoTime();
            failure = why;
            lane.settled(this);
        }
    }

    public boolean isSettled() {
        return settled != 0;
    }

    /** Takes the end for itself: the deadline passed. */
    boolean expire(Failure why) {
        if (!SETTLED.compareAndSet(this, 0, 1)) {
            return false;
        }
        end = System.nanoTime();
        failure = why;
        return true;
    }
}
