package wirelab.jetty;

import java.nio.ByteBuffer;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.server.Handler;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.eclipse.jetty.util.IteratingNestedCallback;
import wirelab.Pattern;
import wirelab.server.Reply;
import wirelab.server.Site;

/** Answers requests. Nothing in it waits, so that Jetty may run it in the thread that read the request. */
final class SiteHandler extends Handler.Abstract.NonBlocking {
    private final Site site;

    SiteHandler(Site site) {
        this.site = site;
    }

    @Override
    public boolean handle(Request request, Response response, Callback callback) {
        long arrival = System.nanoTime();
        Reply reply = site.reply(request.getMethod(), request.getHttpURI().getPath());
        site.count();
        response.setStatus(200);
        if (reply instanceof Reply.Document document) {
            length(response, document.body().length);
            response.write(true, ByteBuffer.wrap(document.body()), callback);
        } else if (reply instanceof Reply.Bytes bytes) {
            length(response, bytes.size());
            if (bytes.size() <= Pattern.PIECE) {
                response.write(true, Pattern.piece(0, bytes.size()), callback);
            } else {
                new Pieces(response, bytes.size(), callback).iterate();
            }
        } else if (reply instanceof Reply.Echo) {
            long size = request.getLength();
            if (size >= 0) {
                length(response, size);
            }
            Content.copy(request, response, callback);
        } else if (reply instanceof Reply.Delay delay) {
            length(response, 0);
            site.after(arrival, delay.micros(), () -> response.write(true, null, callback));
        } else if (reply instanceof Reply.Redirect redirect) {
            response.setStatus(302);
            response.getHeaders().put(HttpHeader.LOCATION, redirect.location());
            length(response, 0);
            response.write(true, null, callback);
        } else if (reply instanceof Reply.Status status) {
            response.setStatus(status.code());
            length(response, 0);
            response.write(true, null, callback);
        }
        return true;
    }

    private static void length(Response response, long size) {
        response.getHeaders().put(HttpHeader.CONTENT_LENGTH, size);
    }

    /** A large generated body, piece by piece: the next one when the last one has been taken. */
    private static final class Pieces extends IteratingNestedCallback {
        private final Response response;
        private final long size;
        private long sent;

        Pieces(Response response, long size, Callback then) {
            super(then);
            this.response = response;
            this.size = size;
        }

        @Override
        protected Action process() {
            if (sent == size) {
                return Action.SUCCEEDED;
            }
            ByteBuffer piece = Pattern.piece(sent, size - sent);
            sent += piece.remaining();
            response.write(sent == size, piece, this);
            return Action.SCHEDULED;
        }
    }
}
