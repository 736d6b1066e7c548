package wirelab.server;

import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.ServerSpec;

/** The site of a server: chooses the response to a request, for every protocol alike. */
public final class Site {
    /** The longest delay that a client may ask for: an hour. */
    private static final long LONGEST_DELAY_US = 3_600_000_000L;

    /** The largest generated body that a client may ask for, in bytes. */
    private static final long LARGEST_BODY = 1L << 40;

    private static final Reply ECHO = new Reply.Echo();
    private static final Reply REDIRECT = new Reply.Redirect("/redirect");
    private static final Reply WRONG = new Reply.Status(400);
    private static final Reply MISSING = new Reply.Status(404);
    private static final Reply NOT_ALLOWED = new Reply.Status(405);

    private final Documents documents;
    private final boolean echo;
    private final boolean bytes;
    private final boolean delay;
    private final boolean redirect;
    private final boolean heron;
    private final LongAdder answered = new LongAdder();
    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(1, task -> {
        Thread thread = new Thread(task, "delays");
        thread.setDaemon(true);
        return thread;
    });

    Site(ServerSpec spec) throws Failure {
        if (spec.features.contains("files") && spec.documentRoot == null) {
            throw new Failure(ErrorKind.OTHER, "the feature `files` is asked for without a `document_root`");
        }
        documents = spec.documentRoot == null ? null : new Documents(spec.documentRoot);
        echo = spec.features.contains("echo");
        bytes = spec.features.contains("bytes");
        delay = spec.features.contains("delay");
        redirect = spec.features.contains("redirect");
        heron = spec.features.contains("heron");
    }

    /** The response to a request; `path` may have a query. */
    public Reply reply(String method, String target) {
        int query = target.indexOf('?');
        String path = query < 0 ? target : target.substring(0, query);
        if (echo && path.equals("/echo")) {
            return method.equals("POST") ? ECHO : NOT_ALLOWED;
        }
        if (!method.equals("GET")) {
            return NOT_ALLOWED;
        }
        if (bytes && path.startsWith("/bytes/")) {
            long size = number(path, "/bytes/".length(), LARGEST_BODY);
            return size < 0 ? WRONG : new Reply.Bytes(size);
        }
        if (delay && path.startsWith("/delay/")) {
            long micros = number(path, "/delay/".length(), LONGEST_DELAY_US);
            return micros < 0 ? WRONG : new Reply.Delay(micros);
        }
        if (redirect && path.equals("/redirect")) {
            return REDIRECT;
        }
        if (heron && path.startsWith("/heron/")) {
            byte[] root = Heron.answer(path.substring("/heron/".length()));
            return root == null ? WRONG : new Reply.Document(root);
        }
        byte[] document = documents == null ? null : documents.get(path);
        return document == null ? MISSING : new Reply.Document(document);
    }

    /** The whole number at the end of a path; -1: none, or above the limit. */
    private static long number(String path, int from, long most) {
        try {
            long value = path.charAt(from) == '+' ? -1 : Long.parseLong(path, from, path.length(), 10);
            return value > most ? -1 : value;
        } catch (NumberFormatException | IndexOutOfBoundsException none) {
            return -1;
        }
    }

    /** Runs an action that many microseconds after `arrival`, never early. */
    public void after(long arrival, long micros, Runnable then) {
        long at = arrival + TimeUnit.MICROSECONDS.toNanos(micros);
        timer.schedule(then, at - System.nanoTime(), TimeUnit.NANOSECONDS);
    }

    /** Counts a request that was answered. */
    public void count() {
        answered.increment();
    }

    long answered() {
        return answered.sum();
    }
}
