package wirelab.contract;

/** The spec asks for something that this endpoint cannot do: exit status 127. */
public final class Unsupported extends RuntimeException {
    private static final long serialVersionUID = 1;

    public Unsupported(String message) {
        super(message, null, false, false);
    }
}
