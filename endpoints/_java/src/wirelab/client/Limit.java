package wirelab.client;

import java.util.concurrent.atomic.AtomicLong;
import wirelab.contract.ClientSpec;

/** The number of requests that may still start, or the latest start. */
final class Limit {
    private final AtomicLong left;
    private final long end;

    Limit(ClientSpec.Extent extent, long start) {
        left = extent.requests() >= 0 ? new AtomicLong(extent.requests()) : null;
        end = start + extent.durationNs();
    }

    /** Takes one request that starts at `at`; false: none is left. */
    boolean take(long at) {
        return left != null ? left.getAndDecrement() > 0 : at - end < 0;
    }
}
