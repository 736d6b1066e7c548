package wirelab.client;

import java.util.concurrent.atomic.AtomicBoolean;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/** A connection that is being opened. The library reports its events; the first end counts. */
public abstract class Opening {
    private final AtomicBoolean over = new AtomicBoolean();
    private volatile long connected = Exchange.NEVER;

    /** The transport was connected, at this moment. */
    public final void connected(long at) {
        connected = at;
    }

    /** Requests can be sent, since this moment. */
    public final void opened(long at) {
        if (over.compareAndSet(false, true)) {
            succeeded(connected, at);
        }
    }

    public final void failed(ErrorKind kind, String message) {
        failed(new Failure(kind, message));
    }

    public final void failed(Failure failure) {
        if (over.compareAndSet(false, true)) {
            ended(failure);
        }
    }

    /** Whether no request waits for it any more. */
    public final boolean isOver() {
        return over.get();
    }

    /** Gives it up, because no request waits for it. False: it had ended already. */
    final boolean abandon() {
        return over.compareAndSet(false, true);
    }

    abstract void succeeded(long connected, long ready);

    abstract void ended(Failure failure);
}
