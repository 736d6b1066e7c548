package wirelab.client;

import java.util.ArrayDeque;
import java.util.function.Supplier;

/**
 * The lanes. Whoever has a request to send takes one, and waits in line where all are taken. The lock is held for a few
 * instructions, never while anything is called that takes time.
 */
final class Pool {
    /** Who wants a lane. */
    interface Taker {
        void with(Lane lane);
    }

    private final ArrayDeque<Lane> free = new ArrayDeque<>();
    private final ArrayDeque<Taker> waiting = new ArrayDeque<>();
    /** Makes lanes as needed; null: there are no more than those put in. */
    private final Supplier<Lane> more;
    private boolean serving;

    Pool(Supplier<Lane> more) {
        this.more = more;
    }

    /** Calls the taker with a lane: now, or when there is one. */
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

    /** Puts a lane back. Those in line are served by a loop and not by recursion: the line may be long. */
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
