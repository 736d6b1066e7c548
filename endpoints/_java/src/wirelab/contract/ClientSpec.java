package wirelab.contract;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import java.net.InetAddress;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** A client's spec. The fields that only a library can honour remain, for the library to take. */
public final class ClientSpec {
    /** A number of requests or, where that is negative, nanoseconds. */
    public record Extent(long requests, long durationNs) {
        static Extent of(Fields fields) {
            boolean counted = fields.has("requests");
            Extent extent = counted
                ? new Extent(fields.count("requests", 0), 0) : new Extent(-1, fields.count("duration_ns", 0));
            fields.end();
            return extent;
        }
    }

    /** A right response. */
    public record Expect(int status, long bodySize, String sha256) {
    }

    /** Bounds of the pause of a closed loop; equal ones where it is fixed. */
    public record Pause(long minNs, long maxNs) {
        public boolean isNone() {
            return maxNs == 0;
        }
    }

    public final Protocol protocol;
    public final InetAddress address;
    public final int port;
    public final String serverName;
    /** Authorities to trust, PEM; null: the system's. */
    public final Path trustAnchor;
    public final boolean verify;
    public final String method;
    public final String path;
    public final long bodySize;
    public final List<Map.Entry<String, String>> headers = new ArrayList<>();
    /** Null where nothing is expected. */
    public final Expect expect;
    /** 0: a connection for every request. */
    public final int connections;
    public final int streams;
    /** The workers of a closed loop; 0 in an open loop. */
    public final int workers;
    public final Pause pause;
    public final double ratePerS;
    public final boolean poisson;
    public final Extent extent;
    /** Null: none. */
    public final Extent warmUp;
    public final String resumption;
    public final long connectNs;
    public final long requestNs;
    public final long seed;
    public final boolean histograms;
    public final Path results;
    /** For the library: `addresses`, `qlog_dir`, `threads`. */
    public final Fields rest;
    /** For the library: `key_log`. */
    public final Fields tls;
    /** For the library: all of it. */
    public final Fields transport;

    public ClientSpec(Fields spec, Role role) throws Failure {
        protocol = role.protocol(spec);
        address = Address.of(spec.text("address"));
        port = (int) spec.count("port", 1);
        serverName = spec.text("server_name");
        tls = Tls.take(spec, protocol);
        String anchor = tls.textOrNull("trust_anchor");
        trustAnchor = anchor == null ? null : Path.of(anchor);
        verify = protocol.isSecure() && tls.flag("verify");

        Fields request = spec.inner("request");
        method = request.text("method");
        path = request.text("path");
        bodySize = request.count("body_size", 0);
        if (request.has("headers")) {
            for (JsonElement pair : request.list("headers")) {
                JsonArray both = pair.getAsJsonArray();
                headers.add(Map.entry(both.get(0).getAsString(), both.get(1).getAsString()));
            }
        }
        expect = request.has("expect") ? expectOf(request.inner("expect")) : null;
        request.end();

        Fields policy = spec.inner("connections");
        boolean persistent =
            policy.choose("policy", List.of("per_request", "persistent")).equals("persistent");
        connections = persistent ? (int) policy.count("connections", 1) : 0;
        streams = persistent ? (int) policy.count("streams", 1) : 1;
        policy.end();
        if (streams > 1 && !protocol.multiplexes()) {
            throw new Unsupported("spec.connections: `streams` = " + streams + "; supported in " + protocol.token() + ": 1");
        }

        Fields schedule = spec.inner("schedule");
        boolean closed = schedule.choose("loop", List.of("closed", "open")).equals("closed");
        workers = closed ? (int) schedule.count("workers", 1) : 0;
        pause = closed && schedule.has("pause") ? pauseOf(schedule.inner("pause")) : new Pause(0, 0);
        ratePerS = closed ? 0 : schedule.number("rate_per_s");
        poisson = !closed && schedule.choose("arrivals", List.of("uniform", "poisson")).equals("poisson");
        schedule.end();
        if (!closed && !(ratePerS > 0 && ratePerS < Double.POSITIVE_INFINITY)) {
            throw new Unsupported("spec.schedule: `rate_per_s` = " + ratePerS + "; supported: numbers above 0");
        }

        extent = Extent.of(spec.inner("extent"));
        warmUp = spec.has("warm_up") ? Extent.of(spec.inner("warm_up")) : null;
        List<String> policies = protocol.isSecure() ? List.of("none", "resume", "zero_rtt") : List.of("none");
        resumption = spec.has("resumption") ? spec.choose("resumption", policies) : "none";
        Fields timeouts = spec.inner("timeouts");
        connectNs = timeouts.count("connect_ns", 0);
        requestNs = timeouts.count("request_ns", 0);
        timeouts.end();
        seed = spec.bits("seed");
        histograms = spec.choose("recording", List.of("samples", "histograms")).equals("histograms");
        results = Path.of(spec.text("results"));
        transport = spec.innerOrEmpty("transport");
        rest = spec;
    }

    /** Wanted bytes of response body, for the header of a raw transport. */
    public long wantedSize() {
        return expect == null ? bodySize : expect.bodySize;
    }

    /** A remaining field would be ignored, so it is unsupported. */
    public void end() {
        tls.end();
        transport.end();
        rest.end();
    }

    private static Expect expectOf(Fields fields) {
        Expect expect =
            new Expect((int) fields.count("status", 0), fields.count("body_size", 0), fields.text("sha256"));
        fields.end();
        return expect;
    }

    private static Pause pauseOf(Fields fields) {
        Pause pause = switch (fields.choose("kind", List.of("none", "fixed", "uniform"))) {
            case "fixed" -> {
                long ns = fields.count("ns", 0);
                yield new Pause(ns, ns);
            }
            case "uniform" -> {
                long least = fields.count("min_ns", 0);
                yield new Pause(least, Math.max(least, fields.count("max_ns", 0)));
            }
            default -> new Pause(0, 0);
        };
        fields.end();
        return pause;
    }
}
