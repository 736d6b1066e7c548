package wirelab.client;

import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import wirelab.contract.ErrorKind;
import wirelab.contract.Handshake;

/** Records as rows of numbers in large arrays: nothing for the garbage collector to follow. */
final class Samples implements Recorder.Part {
    static final int PER_CHUNK = 4096;
    private static final int INTENDED = 0;
    private static final int START = 1;
    private static final int CONNECTED = 2;
    private static final int READY = 3;
    private static final int FIRST_BYTE = 4;
    private static final int END = 5;
    private static final int BYTES_IN = 6;
    private static final int BYTES_OUT = 7;
    private static final int CONNECTION = 8;
    /** Status, handshake, error, a byte or two each; 0 is none. */
    private static final int FACTS = 9;
    private static final int WIDTH = 10;

    private final Queue<long[]> chunks;
    private final List<long[]> full = new ArrayList<>();
    private long[] current;
    private int used;
    private long last = Exchange.NEVER;

    Samples(Queue<long[]> chunks) {
        this.chunks = chunks;
        this.current = next();
    }

    static long[] chunk() {
        return new long[PER_CHUNK * WIDTH];
    }

    private long[] next() {
        long[] chunk = chunks.poll();
        return chunk == null ? chunk() : chunk;
    }

    @Override
    public void add(Exchange x) {
        if (used == current.length) {
            full.add(current);
            current = next();
            used = 0;
        }
        current[used + INTENDED] = x.intended;
        current[used + START] = x.start;
        current[used + CONNECTED] = x.connected;
        current[used + READY] = x.ready;
        current[used + FIRST_BYTE] = x.firstByte;
        current[used + END] = x.end;
        current[used + BYTES_IN] = x.bytesIn;
        current[used + BYTES_OUT] = x.bytesOut;
        current[used + CONNECTION] = x.connection;
        int handshake = x.opened && x.handshake != null ? x.handshake.ordinal() + 1 : 0;
        int error = x.failure == null ? 0 : x.failure.kind.ordinal() + 1;
        current[used + FACTS] = x.status | handshake << 16 | error << 24;
        used += WIDTH;
        if (last == Exchange.NEVER || x.end - last > 0) {
            last = x.end;
        }
    }

    @Override
    public long lastEnd() {
        return last;
    }

    /** One record. */
    record Row(long[] chunk, int at) {
        long intended() {
            return chunk[at + INTENDED];
        }

        ErrorKind error() {
            int error = (int) (chunk[at + FACTS] >> 24);
            return error == 0 ? null : ErrorKind.values()[error - 1];
        }

        /** As a JSON line, with times from `zero` on. */
        void write(StringBuilder line, long zero) {
            time(line.append('{'), "intended_ns", INTENDED, zero);
            time(line, "start_ns", START, zero);
            time(line, "connected_ns", CONNECTED, zero);
            time(line, "handshake_ns", READY, zero);
            time(line, "first_byte_ns", FIRST_BYTE, zero);
            time(line, "last_byte_ns", END, zero);
            number(line, "bytes_out", chunk[at + BYTES_OUT]);
            number(line, "bytes_in", chunk[at + BYTES_IN]);
            int status = (int) (chunk[at + FACTS] & 0xffff);
            if (status != 0) {
                number(line, "status", status);
            }
            number(line, "connection", chunk[at + CONNECTION]);
            int handshake = (int) (chunk[at + FACTS] >> 16 & 0xff);
            if (handshake != 0) {
                line.append(",\"handshake\":\"").append(Handshake.values()[handshake - 1].token()).append('"');
            }
            if (error() != null) {
                line.append(",\"error\":\"").append(error().token()).append('"');
            }
            line.append("}\n");
        }

        private void time(StringBuilder line, String name, int column, long zero) {
            if (chunk[at + column] != Exchange.NEVER) {
                number(line, name, Math.max(0, chunk[at + column] - zero));
            }
        }

        private static void number(StringBuilder line, String name, long value) {
            if (line.charAt(line.length() - 1) != '{') {
                line.append(',');
            }
            line.append('"').append(name).append("\":").append(value);
        }
    }

    void rows(List<Row> all) {
        for (long[] chunk : full) {
            rows(all, chunk, chunk.length);
        }
        rows(all, current, used);
    }

    private static void rows(List<Row> all, long[] chunk, int end) {
        for (int at = 0; at < end; at += WIDTH) {
            all.add(new Row(chunk, at));
        }
    }
}
