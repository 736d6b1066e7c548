package wirelab.client;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ConcurrentLinkedQueue;
import wirelab.contract.ClientSpec;

/**
 * Records of requests during the window. Threads that end requests have separate parts, unless there are more threads
 * than parts, so threads hardly wait for one another. Merging, sorting and writing come after `finish`.
 */
final class Recorder {
    /** Records that are allocated and touched before the window at most: 40 MB. */
    private static final long PREALLOCATED = 500_000;

    /** Parts at most, a power of two. Not one for each thread: some libraries make threads without end. */
    private static final int STRIPES = 16;

    private final boolean histograms;
    private final ConcurrentLinkedQueue<long[]> chunks = new ConcurrentLinkedQueue<>();
    private final Stripe[] stripes = new Stripe[STRIPES];

    Recorder(ClientSpec spec) {
        histograms = spec.histograms;
        Arrays.setAll(stripes, number -> new Stripe());
        long expected = histograms ? 0 : Math.min(expected(spec), PREALLOCATED);
        for (long room = 0; room < expected; room += Samples.PER_CHUNK) {
            chunks.add(Samples.chunk());
        }
    }

    /** The records of one thread. */
    interface Part {
        void add(Exchange exchange);

        /** The end of the last request; `NEVER`: none. */
        long lastEnd();
    }

    /** A part that some threads share; the first of them that needs it makes it. */
    private static final class Stripe {
        private Part part;
    }

    void add(Exchange exchange) {
        Stripe stripe = stripes[(int) Thread.currentThread().getId() & STRIPES - 1];
        synchronized (stripe) {
            if (stripe.part == null) {
                stripe.part = histograms ? new Counters() : new Samples(chunks);
            }
            stripe.part.add(exchange);
        }
    }

    List<Part> parts() {
        List<Part> parts = new ArrayList<>();
        for (Stripe stripe : stripes) {
            synchronized (stripe) {
                if (stripe.part != null) {
                    parts.add(stripe.part);
                }
            }
        }
        return parts;
    }

    private static long expected(ClientSpec spec) {
        if (spec.extent.requests() >= 0) {
            return spec.extent.requests();
        }
        double seconds = spec.extent.durationNs() / 1e9;
        // In a closed loop an estimate: the number for a fast protocol on one core.
        return (long) (seconds * (spec.workers > 0 ? 50_000 : spec.ratePerS * 1.1));
    }
}
