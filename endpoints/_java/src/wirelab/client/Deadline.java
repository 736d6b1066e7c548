package wirelab.client;

import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Guards the requests of a lane, one after the other, at next to no cost while they are in time: one timer stays armed, and
 * is armed anew if the current request has time left.
 */
final class Deadline implements Runnable {
    private final Lane lane;
    private final ScheduledExecutorService timer;
    private final AtomicBoolean armed = new AtomicBoolean();
    private volatile long firesAt;
    private volatile Exchange guarded;

    Deadline(Lane lane, ScheduledExecutorService timer) {
        this.lane = lane;
        this.timer = timer;
    }

    void guard(Exchange exchange) {
        guarded = exchange;
        long at = lane.deadline(exchange);
        if (armed.compareAndSet(false, true) || firesAt - at > 0) {
            arm(at);
        }
    }

    private void arm(long at) {
        firesAt = at;
        timer.schedule(this, at - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    @Override
    public void run() {
        armed.set(false);
        Exchange exchange = guarded;
        if (exchange == null || exchange.isSettled()) {
            return;
        }
        long at = lane.deadline(exchange);
        if (at - System.nanoTime() <= 0) {
            lane.expired(exchange);
        } else if (armed.compareAndSet(false, true)) {
            arm(at);
        }
    }
}
