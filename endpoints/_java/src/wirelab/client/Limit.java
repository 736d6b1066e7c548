package wirelab.client;

import java.util.concurrent.atomic.AtomicLong;
import wirelab.contract.ClientSpec;

/** How many requests may still start, or until when. */
final class Limit {
    private final AtomicLong left;
    private final long end;

    Limit(ClientSpec.Extent extent, long start) {
        left = extent.requests() >= 0 ? new AtomicLong(extent.requests()) : null;
        end = start + extent.durationNs();
    }

    /** Takes one request that is to start at `at`; false: there is none left. */
    boolean take(long at) {
        return left != null ? left.getAndDecrement() > 0 : at - end < 0;
    }
}
