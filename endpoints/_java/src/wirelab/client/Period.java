package wirelab.client;

import java.util.SplittableRandom;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import wirelab.contract.ClientSpec;

/** A period in which requests are sent by the schedule: the warm-up or the measured window. */
final class Period {
    private final Engine engine;
    private final ClientSpec spec;
    private final Pool pool;
    private final long start;
    private final Limit limit;
    private final SplittableRandom random;
    private final CountDownLatch over = new CountDownLatch(1);
    /** Workers, or arrivals and their carriers. */
    private final AtomicLong under = new AtomicLong(1);
    /** Once all have arrived: the latest start of a request that waits for a lane. */
    private volatile long latestStart = Exchange.NEVER;

    Period(Engine engine, Pool pool, ClientSpec.Extent extent, long start, long stream) {
        this.engine = engine;
        this.spec = engine.spec;
        this.pool = pool;
        this.start = start;
        this.limit = new Limit(extent, start);
        this.random = new SplittableRandom(spec.seed * 0x9e3779b97f4a7c15L + stream);
    }

    /** Sends all requests, and returns when none is in flight. */
    void run() throws InterruptedException {
        if (spec.workers > 0) {
            Worker[] workers = new Worker[spec.workers];
            for (int i = 0; i < workers.length; i++) {
                workers[i] = new Worker(random.split());
            }
            under.addAndGet(workers.length);
            for (Worker worker : workers) {
                worker.next();
            }
        } else {
            dispatch();
        }
        left();
        over.await();
        engine.throwCrash();
    }

    private void left() {
        if (under.decrementAndGet() == 0) {
            over.countDown();
        }
    }

    /** Ends at once, because the program has a bug. */
    void crash() {
        over.countDown();
    }

    /** Starts a request at each arrival, independent of the earlier ones. */
    private void dispatch() {
        Arrivals arrivals = new Arrivals(spec.ratePerS, spec.poisson ? random.split() : null);
        for (long at = start + arrivals.next(); limit.take(at); at = start + arrivals.next()) {
            for (long wait = at - System.nanoTime(); wait > 0; wait = at - System.nanoTime()) {
                LockSupport.parkNanos(wait);
            }
            under.incrementAndGet();
            pool.take(new Arrival(at));
        }
        latestStart = System.nanoTime() + spec.requestNs;
    }

    /** A request of an open loop. While it waits for a lane, its response time runs. */
    private final class Arrival implements Pool.Taker, Lane.Passenger {
        private final long intended;

        Arrival(long intended) {
            this.intended = intended;
        }

        @Override
        public void with(Lane lane) {
            long last = latestStart;
            if (last != Exchange.NEVER && System.nanoTime() - last > 0) {
                engine.keepUnsent(lane, intended);
                pool.put(lane);
                left();
            } else {
                lane.carry(intended, null, false, this);
            }
        }

        @Override
        public void arrived(Lane lane, Exchange exchange) {
            pool.put(lane);
            left();
        }
    }

    /** One worker of a closed loop: sends, waits for the response, pauses, and sends again. */
    private final class Worker implements Pool.Taker, Lane.Passenger {
        private final SplittableRandom pauses;
        /** More than one: the response came before sending returned. A loop replaces recursion. */
        private final AtomicInteger steps = new AtomicInteger();
        private volatile long intended = start;

        Worker(SplittableRandom pauses) {
            this.pauses = pauses;
        }

        void next() {
            if (steps.getAndIncrement() == 0) {
                do {
                    engine.guarded(() -> pool.take(this));
                } while (steps.decrementAndGet() > 0);
            }
        }

        @Override
        public void with(Lane lane) {
            long now = System.nanoTime();
            // The start decides: "none starts after the end".
            if (!limit.take(now - intended > 0 ? now : intended)) {
                pool.put(lane);
                left();
                return;
            }
            lane.carry(intended, null, false, this);
        }

        @Override
        public void arrived(Lane lane, Exchange exchange) {
            pool.put(lane);
            if (spec.pause.isNone()) {
                intended = System.nanoTime();
                next();
                return;
            }
            long range = spec.pause.maxNs() - spec.pause.minNs();
            intended = exchange.end + spec.pause.minNs() + (range == 0 ? 0 : pauses.nextLong(range + 1));
            engine.timer.schedule(this::next, intended - System.nanoTime(), TimeUnit.NANOSECONDS);
        }
    }
}
