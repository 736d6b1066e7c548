package wirelab.client;

import java.security.MessageDigest;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/** Carries one request at a time: over a connection of its own each, or a stream's worth of a persistent one. */
final class Lane {
    /** The owner of a request. */
    interface Passenger {
        /** The request ended, and the lane is free. */
        void arrived(Lane lane, Exchange exchange);
    }

    private final Engine engine;
    private final Link link;
    private final boolean perRequest;
    private final Deadline deadline;
    private volatile Passenger passenger;

    Lane(Engine engine, Link link, boolean perRequest) {
        this.engine = engine;
        this.link = link;
        this.perRequest = perRequest;
        this.deadline = new Deadline(this, engine.timer);
    }

    /** Sends one request that was to start at `intended`. */
    void carry(long intended, MessageDigest digest, boolean onlyConnects, Passenger who) {
        passenger = who;
        Connection fresh = null;
        Failure unprepared = null;
        if (link.wantsConnection()) {
            try {
                fresh = engine.transport.prepare();
            } catch (Failure failure) {
                unprepared = failure;
            }
        }
        long start = System.nanoTime();
        Exchange exchange = new Exchange(this, intended - start > 0 ? start : intended, start, digest);
        exchange.onlyConnects = onlyConnects;
        if (unprepared != null) {
            exchange.fail(unprepared);
            return;
        }
        exchange.connecting = fresh != null;
        deadline.guard(exchange);
        link.send(exchange, fresh);
    }

    /** The deadline of a request's next stage: connected, or complete. */
    long deadline(Exchange exchange) {
        long limit = exchange.connecting ? Math.min(engine.spec.connectNs, engine.spec.requestNs) : engine.spec.requestNs;
        return exchange.start + limit;
    }

    void expired(Exchange exchange) {
        boolean connecting = exchange.connecting;
        ErrorKind kind = !connecting && engine.spec.protocol == wirelab.contract.Protocol.UDP
            ? ErrorKind.LOST : ErrorKind.TIMEOUT;
        String message = connecting
            ? "connecting took longer than " + Math.min(engine.spec.connectNs, engine.spec.requestNs) + " ns"
            : "the response was not complete after " + engine.spec.requestNs + " ns";
        if (exchange.expire(new Failure(kind, message))) {
            // With one request at a time, its late response would be taken for that of the next one.
            link.giveUp(exchange, engine.spec.protocol.multiplexes() && !perRequest);
            finish(exchange);
        }
    }

    /** The request ended, but its response is not checked yet. Called once, from the thread that ended it. */
    void settled(Exchange exchange) {
        if (exchange.failure != null) {
            link.failed(exchange, engine.spec.protocol.multiplexes() && !perRequest);
        } else if (!exchange.onlyConnects) {
            exchange.failure = engine.judge(exchange);
        }
        finish(exchange);
    }

    private void finish(Exchange exchange) {
        engine.keep(exchange);
        Passenger who = passenger;
        if (perRequest) {
            link.close(() -> who.arrived(this, exchange)); // closing is no part of the request's time
        } else {
            who.arrived(this, exchange);
        }
    }

}
