package wirelab.kwik;

import tech.kwik.core.log.NullLogger;

/** kwik's errors go to the trial's log, and nothing else does. */
final class ErrorLog extends NullLogger {
    @Override
    public void error(String message) {
        System.err.println("kwik: " + message);
    }

    @Override
    public void error(String message, Throwable error) {
        System.err.println("kwik: " + message + ": " + error);
    }
}
