package wirelab.kwik;

import java.io.IOException;
import java.io.OutputStream;
import java.util.concurrent.CountDownLatch;
import tech.kwik.flupke.server.HttpRequestHandler;
import tech.kwik.flupke.server.HttpServerRequest;
import tech.kwik.flupke.server.HttpServerResponse;
import wirelab.Pattern;
import wirelab.server.Reply;
import wirelab.server.Site;

/** Answers requests of HTTP/3. flupke gives each a thread of its own, so it may wait. */
final class SiteHandler implements HttpRequestHandler {
    /**
     * A multiple of the pattern's period, so that every piece begins at the start of the array. flupke 0.9.4 sends a piece
     * from elsewhere in an array too short, by its offset.
     */
    private static final int PIECE = 251 * 256;

    private final Site site;

    SiteHandler(Site site) {
        this.site = site;
    }

    @Override
    public void handleRequest(HttpServerRequest request, HttpServerResponse response) throws IOException {
        long arrival = System.nanoTime();
        Reply reply = site.reply(request.method(), request.path());
        site.count();
        response.setStatus(status(reply));
        if (reply instanceof Reply.Document document) {
            length(response, document.body().length);
            response.getOutputStream().write(document.body());
        } else if (reply instanceof Reply.Bytes bytes) {
            length(response, bytes.size());
            pattern(response.getOutputStream(), bytes.size());
        } else if (reply instanceof Reply.Echo) {
            request.headers().firstValue("content-length").ifPresent(size -> response.addHeader("content-length", size));
            request.body().transferTo(response.getOutputStream());
        } else if (reply instanceof Reply.Delay delay) {
            await(site, arrival, delay.micros());
            length(response, 0);
        } else {
            if (reply instanceof Reply.Redirect redirect) {
                response.addHeader("location", redirect.location());
            }
            length(response, 0);
        }
        response.getOutputStream().close();
    }

    private static int status(Reply reply) {
        return reply instanceof Reply.Status status ? status.code() : reply instanceof Reply.Redirect ? 302 : 200;
    }

    private static void length(HttpServerResponse response, long size) {
        response.addHeader("content-length", Long.toString(size));
    }

    /** Waits until so many microseconds after `arrival`, in the request's own thread. */
    static void await(Site site, long arrival, long micros) throws IOException {
        CountDownLatch over = new CountDownLatch(1);
        site.after(arrival, micros, over::countDown);
        try {
            over.await();
        } catch (InterruptedException stopped) {
            throw new IOException("the server is stopped", stopped);
        }
    }

    static void pattern(OutputStream out, long size) throws IOException {
        for (long sent = 0, piece; sent < size; sent += piece) {
            piece = Math.min(PIECE, size - sent);
            out.write(Pattern.shared(), 0, (int) piece);
        }
    }
}
