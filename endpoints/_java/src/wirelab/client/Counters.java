package wirelab.client;

import com.google.gson.JsonObject;
import java.util.EnumMap;
import java.util.Map;
import wirelab.contract.ErrorKind;
import wirelab.contract.Handshake;

/** Distributions and sums. */
final class Counters implements Recorder.Part {
    private final Distribution response = new Distribution();
    private final Distribution service = new Distribution();
    private final Distribution lag = new Distribution();
    private final Distribution handshake = new Distribution();
    private final Distribution firstByte = new Distribution();
    private final Distribution failure = new Distribution();
    private final long[] errors = new long[ErrorKind.values().length];
    private final long[] handshakes = new long[Handshake.values().length];
    private long requests;
    private long bytesIn;
    private long bytesOut;
    private long connections;
    private long last = Exchange.NEVER;

    @Override
    public void add(Exchange x) {
        if (last == Exchange.NEVER || x.end - last > 0) {
            last = x.end;
        }
        lag.add(x.start - x.intended);
        if (x.opened) {
            connections++;
            if (x.handshake != null) {
                handshakes[x.handshake.ordinal()]++;
            }
        }
        if (x.failure != null) {
            errors[x.failure.kind.ordinal()]++;
            failure.add(x.end - x.intended);
            return;
        }
        requests++;
        bytesIn += x.bytesIn;
        bytesOut += x.bytesOut;
        response.add(x.end - x.intended);
        service.add(x.end - x.start);
        if (x.firstByte != Exchange.NEVER) {
            firstByte.add(Math.max(0, x.firstByte - x.start));
        }
        long done = x.ready != Exchange.NEVER ? x.ready : x.connected;
        if (x.opened && done != Exchange.NEVER) {
            handshake.add(Math.max(0, done - x.start));
        }
    }

    @Override
    public long lastEnd() {
        return last;
    }

    void merge(Counters other) {
        response.merge(other.response);
        service.merge(other.service);
        lag.merge(other.lag);
        handshake.merge(other.handshake);
        firstByte.merge(other.firstByte);
        failure.merge(other.failure);
        for (int i = 0; i < errors.length; i++) {
            errors[i] += other.errors[i];
        }
        for (int i = 0; i < handshakes.length; i++) {
            handshakes[i] += other.handshakes[i];
        }
        requests += other.requests;
        bytesIn += other.bytesIn;
        bytesOut += other.bytesOut;
        connections += other.connections;
    }

    long requests() {
        return requests;
    }

    Map<ErrorKind, Long> errors() {
        Map<ErrorKind, Long> counts = new EnumMap<>(ErrorKind.class);
        for (ErrorKind kind : ErrorKind.values()) {
            if (errors[kind.ordinal()] > 0) {
                counts.put(kind, errors[kind.ordinal()]);
            }
        }
        return counts;
    }

    JsonObject json() {
        JsonObject object = new JsonObject();
        object.add("response", response.json());
        object.add("service", service.json());
        object.add("lag", lag.json());
        object.add("handshake", handshake.json());
        object.add("first_byte", firstByte.json());
        object.add("failure", failure.json());
        object.addProperty("requests", requests);
        object.add("errors", Results.json(errors()));
        object.addProperty("bytes_in", bytesIn);
        object.addProperty("bytes_out", bytesOut);
        object.addProperty("connections", connections);
        JsonObject begun = new JsonObject();
        for (Handshake kind : Handshake.values()) {
            if (handshakes[kind.ordinal()] > 0) {
                begun.addProperty(kind.token(), handshakes[kind.ordinal()]);
            }
        }
        object.add("handshakes", begun);
        return object;
    }
}
