package wirelab.contract;

/** A failure: the attempt and its result. It has no stack trace, because a failed request is no bug. */
public final class Failure extends Exception {
    private static final long serialVersionUID = 1;

    public final ErrorKind kind;

    public Failure(ErrorKind kind, String message) {
        super(message, null, false, false);
        this.kind = kind;
    }
}
