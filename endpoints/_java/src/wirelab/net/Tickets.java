package wirelab.net;

import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.util.concurrent.ConcurrentLinkedDeque;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManager;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;

/**
 * The TLS contexts of a client of JSSE. A context keeps one ticket per server, the last one; so that connections at the
 * same time can all resume, each borrows a context of its own, and returns it with the ticket that it got.
 */
public final class Tickets {
    private static final SecureRandom RANDOM = new SecureRandom();

    private final Trust trust;
    private final boolean reuse;
    private final ConcurrentLinkedDeque<Slot> free = new ConcurrentLinkedDeque<>();
    private final AtomicInteger stored = new AtomicInteger();

    public Tickets(Trust trust, boolean reuse) {
        this.trust = trust;
        this.reuse = reuse;
    }

    /** A context for one connection alone. */
    public static final class Slot {
        private SSLContext context;
        private volatile boolean presented;

        public SSLContext context() {
            return context;
        }

        /** The kind of the handshake that has just ended with this context. */
        public Handshake proven() {
            return presented ? Handshake.FULL : Handshake.RESUMED;
        }

        public boolean hasTicket() {
            return context.getClientSessionContext().getIds().hasMoreElements();
        }
    }

    /** A context for a new connection: one with a ticket, if available and allowed. */
    public Slot borrow() throws Failure {
        Slot slot = reuse ? free.pollFirst() : null;
        if (slot != null) {
            stored.decrementAndGet();
            slot.presented = false;
            return slot;
        }
        Slot fresh = new Slot();
        try {
            SSLContext context = SSLContext.getInstance("TLSv1.3");
            context.init(null, new TrustManager[] {trust.telling(() -> fresh.presented = true)}, RANDOM);
            fresh.context = context;
            return fresh;
        } catch (GeneralSecurityException error) {
            throw new Failure(ErrorKind.TLS, "setting up TLS: " + error);
        }
    }

    /** Takes a context back, if it has a ticket for the next connection. */
    public void giveBack(Slot slot) {
        if (reuse && slot.hasTicket()) {
            free.addFirst(slot);
            stored.incrementAndGet();
        }
    }

    /** Unused contexts with a ticket. */
    public int stored() {
        return stored.get();
    }

    /** Whether connections may resume. */
    public boolean areWanted() {
        return reuse;
    }
}
