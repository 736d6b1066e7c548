package wirelab.net;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyStore;
import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.TrustManager;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/**
 * Handshakes between two engines in memory, before `ready`, so that TLS is warm in the first ones of a trial.
 * The installation makes the identity for this.
 */
public final class TlsRehearsal {
    private static final int HANDSHAKES = 3;
    private static final String KEY_STORE = "wirelab.rehearsal";

    private TlsRehearsal() {
    }

    /** The key store of the rehearsal; null where the endpoint was started without one. */
    public static KeyStore identity() throws Failure {
        String path = System.getProperty(KEY_STORE);
        if (path == null) {
            return null;
        }
        try {
            KeyStore store = KeyStore.getInstance("PKCS12");
            store.load(Files.newInputStream(Path.of(path)), Pem.PASSWORD.toCharArray());
            return store;
        } catch (IOException | GeneralSecurityException error) {
            throw new Failure(ErrorKind.OTHER, "reading " + path + ": " + error + "; install the endpoint again");
        }
    }

    public static void run() throws Failure {
        KeyStore identity = identity();
        if (identity == null) {
            return;
        }
        try {
            SSLContext server = context();
            Trust trust = new Trust(null, false);
            for (int i = 0; i < HANDSHAKES; i++) {
                SSLContext client = SSLContext.getInstance("TLSv1.3");
                client.init(null, new TrustManager[] {trust.telling(() -> { })}, null);
                shake(engine(client.createSSLEngine("rehearsal", 1), true), engine(server.createSSLEngine(), false));
            }
        } catch (GeneralSecurityException | IOException error) {
            throw new Failure(ErrorKind.OTHER, "rehearsing TLS: " + error);
        }
    }

    /** A server's context with the identity of the rehearsal. */
    public static SSLContext context() throws Failure {
        try {
            KeyManagerFactory keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
            keys.init(identity(), Pem.PASSWORD.toCharArray());
            SSLContext server = SSLContext.getInstance("TLSv1.3");
            server.init(keys.getKeyManagers(), null, null);
            return server;
        } catch (GeneralSecurityException error) {
            throw new Failure(ErrorKind.OTHER, "setting up TLS for the rehearsal: " + error);
        }
    }

    private static SSLEngine engine(SSLEngine engine, boolean client) {
        engine.setUseClientMode(client);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setApplicationProtocols(new String[] {"rehearsal"});
        engine.setSSLParameters(parameters);
        return engine;
    }

    private static void shake(SSLEngine client, SSLEngine server) throws IOException {
        int size = client.getSession().getPacketBufferSize();
        ByteBuffer toServer = ByteBuffer.allocate(4 * size);
        ByteBuffer toClient = ByteBuffer.allocate(4 * size);
        for (int step = 0; step < 20; step++) {
            advance(client, toClient, toServer, size);
            advance(server, toServer, toClient, size);
        }
    }

    /** Reads available bytes, runs due tasks, writes a record. */
    private static void advance(SSLEngine engine, ByteBuffer in, ByteBuffer out, int size) throws IOException {
        in.flip();
        if (in.hasRemaining()) {
            engine.unwrap(in, ByteBuffer.allocate(size));
        }
        in.compact();
        for (Runnable task = engine.getDelegatedTask(); task != null; task = engine.getDelegatedTask()) {
            task.run();
        }
        if (engine.getHandshakeStatus() != HandshakeStatus.NEED_UNWRAP) {
            engine.wrap(ByteBuffer.wrap(new byte[] {1, 2, 3}), out);
        }
    }
}
