package wirelab.client;

import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/** Prepares, warms up, measures. It knows no protocol. */
final class Engine {
    /** Tickets to store if an open loop does not limit the number of open connections. */
    private static final int TICKETS_FOR_OPEN_LOOP = 64;

    /** The limit for closing at the end. */
    private static final long CLOSING_S = 5;

    final ClientSpec spec;
    final Transport transport;
    /** Pauses and deadlines. */
    final ScheduledThreadPoolExecutor timer;
    private final AtomicInteger numbers = new AtomicInteger();
    private final Recorder recorder;
    private final List<Link> links = new ArrayList<>();
    private Pool pool;
    private volatile boolean measuring;
    private volatile Period period;
    private volatile Throwable crash;
    private volatile Failure firstFailure;

    Engine(ClientSpec spec, Transport transport) {
        this.spec = spec;
        this.transport = transport;
        this.recorder = new Recorder(spec);
        timer = new ScheduledThreadPoolExecutor(1, task -> {
            Thread thread = new Thread(task, "timer");
            thread.setDaemon(true);
            return thread;
        });
        timer.setRemoveOnCancelPolicy(true);
    }

    /** Sends the check request on a connection of its own. */
    void check() throws Failure, InterruptedException {
        if (spec.expect == null) {
            return; // no check is possible, and wirelab may not have started the server
        }
        MessageDigest sha256;
        try {
            sha256 = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException missing) {
            throw new IllegalStateException(missing);
        }
        once(sha256);
        String found = HexFormat.of().formatHex(sha256.digest());
        if (!found.equalsIgnoreCase(spec.expect.sha256())) {
            throw new Failure(ErrorKind.DIGEST, "the body's SHA-256 is " + found + ", not " + spec.expect.sha256());
        }
    }

    /** Fills the ticket store, opens persistent connections, warms up. */
    void open() throws Failure, InterruptedException {
        prime();
        numbers.set(0);
        if (spec.connections == 0) {
            pool = new Pool(() -> new Lane(this, new Link(this), true));
        } else {
            openPersistent();
        }
        if (spec.warmUp != null) {
            run(spec.warmUp, System.nanoTime(), 0);
        }
        if (spec.connections == 0) {
            numbers.set(0); // the connections of the warm-up are not in the results
        }
    }

    /** The measured window, from `zero` on. Returns its length. */
    long measure(long zero) throws InterruptedException {
        measuring = true;
        run(spec.extent, zero, 1);
        measuring = false;
        long last = zero;
        for (Recorder.Part part : recorder.parts()) {
            if (part.lastEnd() != Exchange.NEVER && part.lastEnd() - last > 0) {
                last = part.lastEnd();
            }
        }
        return last - zero;
    }

    /** Closes the connections. */
    void close() throws InterruptedException {
        CountDownLatch open = new CountDownLatch(links.size());
        links.forEach(link -> link.close(open::countDown));
        open.await(CLOSING_S, TimeUnit.SECONDS);
    }

    Recorder recorder() {
        return recorder;
    }

    /** The first failure of the window, for the log. */
    Failure firstFailure() {
        return firstFailure;
    }

    int nextNumber() {
        return numbers.getAndIncrement();
    }

    /** Records a request that ended in the window. */
    void keep(Exchange exchange) {
        if (measuring && !exchange.onlyConnects) {
            recorder.add(exchange);
            if (exchange.failure != null && firstFailure == null) {
                firstFailure = exchange.failure;
            }
        }
    }

    /** Records a request that never had a lane. */
    void keepUnsent(Lane lane, long intended) {
        Exchange unsent = new Exchange(lane, intended, System.nanoTime(), null);
        unsent.expire(new Failure(ErrorKind.TIMEOUT,
            "the request waited for a free connection until its time-out after the end of the window"));
        keep(unsent);
    }

    /** Why a complete response is wrong; null: it is right. */
    Failure judge(Exchange exchange) {
        ClientSpec.Expect expect = spec.expect;
        int status = exchange.status;
        if (spec.protocol.isHttp()) {
            if (expect != null ? status != expect.status() : status >= 300 && status != 304) {
                String wanted = expect == null ? "" : ", not " + expect.status();
                return new Failure(ErrorKind.STATUS, "the server answered with status " + status + wanted);
            }
        }
        if (expect == null || exchange.bytesIn == expect.bodySize()) {
            return null;
        }
        ErrorKind kind = exchange.bytesIn < expect.bodySize() ? ErrorKind.TRUNCATED : ErrorKind.DIGEST;
        return new Failure(kind, "the response has " + exchange.bytesIn + " bytes, not " + expect.bodySize());
    }

    /** Runs a step that must not throw; if it does, the program has a bug and the trial ends. */
    void guarded(Runnable step) {
        try {
            step.run();
        } catch (Throwable bug) {
            crash = bug;
            Period running = period;
            if (running != null) {
                running.crash();
            }
        }
    }

    void throwCrash() {
        if (crash != null) {
            throw new IllegalStateException(crash);
        }
    }

    private void run(ClientSpec.Extent extent, long start, long stream) throws InterruptedException {
        Period next = new Period(this, pool, extent, start, stream);
        period = next;
        next.run();
    }

    /** One request on a connection of its own, which is closed after it. */
    private void once(MessageDigest digest) throws Failure, InterruptedException {
        await(carry(new Lane(this, new Link(this), true), digest, false));
    }

    /** Opens and closes connections until the store has a ticket for each simultaneous connection. */
    private void prime() throws Failure, InterruptedException {
        if (spec.resumption.equals("none")) {
            return;
        }
        int wanted = spec.connections > 0 ? spec.connections : spec.workers > 0 ? spec.workers : TICKETS_FOR_OPEN_LOOP;
        // A server that gives no tickets is no failure: each sample says how its connection began.
        for (int before = transport.tickets(), now; before < wanted; before = now) {
            once(null);
            now = transport.tickets();
            if (now <= before) {
                return;
            }
        }
    }

    /** Successive lanes belong to different connections, to spread the requests over all of them. */
    private void openPersistent() throws Failure, InterruptedException {
        pool = new Pool(null);
        for (int i = 0; i < spec.connections; i++) {
            links.add(new Link(this));
        }
        for (int stream = 0; stream < spec.streams; stream++) {
            for (Link link : links) {
                Lane lane = new Lane(this, link, false);
                if (stream == 0) {
                    await(carry(lane, null, true));
                }
                pool.put(lane);
            }
        }
    }

    private static CompletableFuture<Exchange> carry(Lane lane, MessageDigest digest, boolean onlyConnects) {
        CompletableFuture<Exchange> ended = new CompletableFuture<>();
        lane.carry(System.nanoTime(), digest, onlyConnects, (free, exchange) -> ended.complete(exchange));
        return ended;
    }

    private static void await(CompletableFuture<Exchange> ended) throws Failure, InterruptedException {
        try {
            Exchange exchange = ended.get();
            if (exchange.failure != null) {
                throw exchange.failure;
            }
        } catch (ExecutionException impossible) {
            throw new IllegalStateException(impossible);
        }
    }
}
