package wirelab.kwik;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.ByteBuffer;
import tech.kwik.core.QuicClientConnection;
import tech.kwik.core.QuicStream;
import wirelab.client.Exchange;
import wirelab.contract.ClientSpec;

/** A request of the raw transport, on a bidirectional stream of its own. */
final class RawExchange {
    private static final String DELAY = "/delay/";
    private static final int PIECE = 65_536;

    private RawExchange() {
    }

    /** Sends it and waits for all of the response. */
    static void run(QuicClientConnection connection, ClientSpec spec, Exchange exchange) throws IOException {
        QuicStream stream = connection.createStream(true);
        exchange.attachment = stream;
        ByteBuffer header = ByteBuffer.allocate(RawProtocol.HEADER);
        header.putLong(spec.wantedSize()).putLong(spec.bodySize).putLong(delay(spec.path));
        OutputStream out = new SureOutput(stream.getOutputStream());
        out.write(header.array());
        SiteHandler.pattern(out, spec.bodySize);
        out.close();
        InputStream in = stream.getInputStream();
        byte[] piece = new byte[PIECE];
        int read = 0;
        while (read >= 0) {
            read = in.read(piece);
            exchange.firstByte(System.nanoTime()); // of an empty response: its end
            if (read > 0) {
                exchange.body(piece, 0, read);
            }
        }
        exchange.complete(System.nanoTime());
    }

    private static long delay(String path) {
        return path.matches(DELAY + "[0-9]{1,18}") ? Long.parseLong(path.substring(DELAY.length())) : 0;
    }
}
