package wirelab;

import java.nio.ByteBuffer;

/** The body of every generated message: the byte at offset i is i mod 251. */
public final class Pattern {
    private static final int PERIOD = 251;
    /** Bytes that one piece has at most; larger bodies are made of several. */
    public static final int PIECE = 65_536;
    private static final byte[] BYTES = new byte[PIECE + PERIOD];
    private static final ByteBuffer DIRECT = ByteBuffer.allocateDirect(BYTES.length);

    static {
        for (int i = 0; i < BYTES.length; i++) {
            BYTES[i] = (byte) (i % PERIOD);
        }
        DIRECT.put(BYTES).flip();
    }

    private Pattern() {
    }

    /** The bytes from an offset on: the wanted number, at most a piece. They are shared: do not write them. */
    public static ByteBuffer piece(long offset, long wanted) {
        return ByteBuffer.wrap(BYTES, start(offset), (int) Math.min(wanted, PIECE)).slice();
    }

    /** The same, outside the heap. */
    public static ByteBuffer directPiece(long offset, long wanted) {
        return DIRECT.slice(start(offset), (int) Math.min(wanted, PIECE)).asReadOnlyBuffer();
    }

    /** Where a piece at an offset begins within `shared()`. */
    public static int start(long offset) {
        return (int) (offset % PERIOD);
    }

    /** The bytes that contain every piece: do not write them. */
    public static byte[] shared() {
        return BYTES;
    }
}
