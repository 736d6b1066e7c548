package wirelab.client;

import com.google.gson.JsonObject;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Base64;
import org.HdrHistogram.Histogram;

/** An HDR histogram of nanoseconds with exact extremes and sum. */
final class Distribution {
    private static final long HOUR_NS = 3_600_000_000_000L;

    /** One nanosecond to an hour without growing in the window; longer times make it grow. */
    private final Histogram hdr = new Histogram(1, HOUR_NS, 3);
    private long min = Long.MAX_VALUE;
    private long max;
    private long sum;

    Distribution() {
        hdr.setAutoResize(true);
    }

    void add(long ns) {
        hdr.recordValue(ns);
        min = Math.min(min, ns);
        max = Math.max(max, ns);
        sum += ns;
    }

    void merge(Distribution other) {
        hdr.add(other.hdr);
        min = Math.min(min, other.min);
        max = Math.max(max, other.max);
        sum += other.sum;
    }

    JsonObject json() {
        JsonObject object = new JsonObject();
        long count = hdr.getTotalCount();
        object.addProperty("v2", count == 0 ? "" : encoded());
        object.addProperty("count", count);
        object.addProperty("min_ns", count == 0 ? 0 : min);
        object.addProperty("max_ns", max);
        object.addProperty("sum_ns", sum);
        return object;
    }

    private String encoded() {
        ByteBuffer buffer = ByteBuffer.allocate(hdr.getNeededByteBufferCapacity());
        int length = hdr.encodeIntoByteBuffer(buffer);
        return Base64.getEncoder().encodeToString(Arrays.copyOf(buffer.array(), length));
    }
}
