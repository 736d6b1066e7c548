package wirelab.kwik;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import java.util.concurrent.Executor;
import tech.kwik.core.QuicConnection;
import tech.kwik.core.QuicStream;
import tech.kwik.core.server.ApplicationProtocolConnection;
import tech.kwik.core.server.ApplicationProtocolConnectionFactory;
import wirelab.server.Reply;
import wirelab.server.Site;

/** The raw transport: each request on a bidirectional stream of its own. */
final class RawProtocol implements ApplicationProtocolConnectionFactory {
    static final int HEADER = 24;

    /** An aborted stream is no failure here; the code has no meaning. */
    private static final long ABORTED = 1;

    private final Site site;
    private final Executor threads;

    RawProtocol(Site site, Executor threads) {
        this.site = site;
        this.threads = threads;
    }

    @Override
    public int maxConcurrentPeerInitiatedBidirectionalStreams() {
        return Integer.MAX_VALUE; // as the configuration of the server says
    }

    @Override
    public ApplicationProtocolConnection createConnection(String protocol, QuicConnection connection) {
        return new ApplicationProtocolConnection() {
            @Override
            public void acceptPeerInitiatedStream(QuicStream stream) {
                threads.execute(() -> answer(stream));
            }
        };
    }

    private void answer(QuicStream stream) {
        try (InputStream in = stream.getInputStream(); OutputStream out = new SureOutput(stream.getOutputStream())) {
            byte[] head = in.readNBytes(HEADER);
            long arrival = System.nanoTime();
            if (head.length < HEADER) {
                stream.resetStream(ABORTED);
                return;
            }
            ByteBuffer header = ByteBuffer.wrap(head);
            long wanted = header.getLong();
            long size = header.getLong();
            long delay = header.getLong();
            if (delay != 0 && !offers(delay) || in.transferTo(OutputStream.nullOutputStream()) != size) {
                stream.resetStream(ABORTED);
                return;
            }
            if (delay != 0) {
                SiteHandler.await(site, arrival, delay);
            }
            site.count();
            SiteHandler.pattern(out, wanted);
        } catch (IOException gone) {
            // The client's to report.
        }
    }

    private boolean offers(long micros) {
        return site.reply("GET", "/delay/" + micros) instanceof Reply.Delay;
    }
}
