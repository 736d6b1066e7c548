package wirelab.server;

/** The response to a request. */
public sealed interface Reply {
    /** Status 200 with this body. */
    record Document(byte[] body) implements Reply {
    }

    /** Status 200 with so many bytes of the pattern. */
    record Bytes(long size) implements Reply {
    }

    /** Status 200 with the request's own body. */
    record Echo() implements Reply {
    }

    /** After so many microseconds, counted from the arrival of the request: status 200 with an empty body. */
    record Delay(long micros) implements Reply {
    }

    /** Status 302 with an empty body, and the location. */
    record Redirect(String location) implements Reply {
    }

    /** This status with an empty body. */
    record Status(int code) implements Reply {
    }
}
