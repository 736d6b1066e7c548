package wirelab.client;

import java.util.ArrayDeque;
import java.util.function.Supplier;

/**
 * The lanes. A request takes one, and waits in line if all are taken. The lock is held for a few
 * instructions, never during a slow call.
 */
final class Pool {
    /** A request that wants a lane. */
    interface Taker {
        void with(Lane lane);
    }

    private final ArrayDeque<Lane> free = new ArrayDeque<>();
    private final ArrayDeque<Taker> waiting = new ArrayDeque<>();
    /** Makes lanes as needed; null: only lanes that were put in exist. */
    private final Supplier<Lane> more;
    private boolean serving;

    Pool(Supplier<Lane> more) {
        this.more = more;
    }

    /** Calls the taker with a lane: now, or when one is free. */
    void take(Taker taker) {
        Lane lane;
        synchronized (this) {
            lane = free.poll();
            if (lane == null && more == null) {
                waiting.add(taker);
                return;
            }
        }
        taker.with(lane == null ? more.get() : lane);
    }

    /** Puts a lane back. A loop, not recursion, serves the line, because the line may be long. */
    void put(Lane lane) {
        synchronized (this) {
            free.add(lane);
            if (serving || waiting.isEmpty()) {
                return;
            }
            serving = true;
        }
        while (true) {
            Lane next;
            Taker taker;
            synchronized (this) {
                if (free.isEmpty() || waiting.isEmpty()) {
                    serving = false;
                    return;
                }
                next = free.poll();
                taker = waiting.poll();
            }
            taker.with(next);
        }
    }
}
