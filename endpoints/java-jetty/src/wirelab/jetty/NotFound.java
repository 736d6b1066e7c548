package wirelab.jetty;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpStatus;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.server.handler.ErrorHandler;
import org.eclipse.jetty.util.Callback;

/** Errors have no body; a path that leads outside, which Jetty calls a bad request, is one that is not there. */
final class NotFound extends ErrorHandler {
    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        if (response.getStatus() == HttpStatus.BAD_REQUEST_400) {
            response.setStatus(HttpStatus.NOT_FOUND_404);
        }
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, 0);
        response.write(true, null, callback);
        return true;
    }
}
