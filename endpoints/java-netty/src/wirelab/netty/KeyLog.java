package wirelab.netty;

import io.netty.handler.codec.quic.BoringSSLKeylog;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import javax.net.ssl.SSLEngine;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Fields;

/** TLS secrets as BoringSSL tells them, which is the NSS key log format. */
final class KeyLog implements BoringSSLKeylog {
    private final OutputStream file;

    private KeyLog(OutputStream file) {
        this.file = file;
    }

    /** Takes `key_log`; null if absent. */
    static KeyLog take(Fields tls) throws Failure {
        String path = tls.textOrNull("key_log");
        try {
            return path == null ? null : new KeyLog(new FileOutputStream(path, true));
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "opening the key log " + path + ": " + error.getMessage());
        }
    }

    @Override
    public synchronized void logKey(SSLEngine engine, String line) {
        try {
            file.write((line + "\n").getBytes(StandardCharsets.US_ASCII));
        } catch (IOException error) {
            System.err.println("writing the key log: " + error.getMessage());
        }
    }
}
