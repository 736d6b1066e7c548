package wirelab.client;

import java.util.SplittableRandom;

/** The arrival times of an open loop in nanoseconds from its start, without end. */
final class Arrivals {
    private final double intervalNs;
    /** Null: at equal intervals. */
    private final SplittableRandom random;
    private long count;
    private double last;

    Arrivals(double ratePerS, SplittableRandom random) {
        this.intervalNs = 1e9 / ratePerS;
        this.random = random;
    }

    long next() {
        if (random == null) {
            return (long) (count++ * intervalNs); // not by adding up: rounding errors do not accumulate
        }
        last -= Math.log(1 - random.nextDouble()) * intervalNs; // exponentially distributed intervals
        return (long) last;
    }
}
