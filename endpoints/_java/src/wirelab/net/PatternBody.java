package wirelab.net;

import java.util.Arrays;
import java.util.Collections;
import java.util.Iterator;
import java.util.NoSuchElementException;
import wirelab.Pattern;

/** The body of a request, in arrays: HttpClient takes no shared slices. */
public final class PatternBody {
    /** A multiple of the pattern's period, so that every piece begins alike. */
    private static final int PIECE = 251 * 64;

    private PatternBody() {
    }

    public static Iterable<byte[]> pieces(long size) {
        byte[] whole = Arrays.copyOf(Pattern.shared(), (int) Math.min(size, PIECE));
        byte[] last = Arrays.copyOf(Pattern.shared(), (int) (size % PIECE));
        if (last.length == 0) {
            return Collections.nCopies(Math.toIntExact(size / PIECE), whole);
        }
        return () -> new Iterator<>() {
            private long left = size;

            @Override
            public boolean hasNext() {
                return left > 0;
            }

            @Override
            public byte[] next() {
                if (left <= 0) {
                    throw new NoSuchElementException();
                }
                byte[] piece = left >= PIECE ? whole : last;
                left -= piece.length;
                return piece;
            }
        };
    }
}
