package wirelab.net;

import java.net.Socket;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.TrustManagerFactory;
import javax.net.ssl.X509ExtendedTrustManager;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/**
 * The trust of a client. It sees every certificate that a server presents, which proves a full handshake: in a
 * resumed one, no certificate is sent (RFC 8446, section 2.2).
 */
public final class Trust {
    /** Shared by all connections. */
    private final X509ExtendedTrustManager judge;

    public Trust(Path anchors, boolean verify) throws Failure {
        judge = verify ? verifier(anchors) : null;
    }

    /** The trust of one connection: calls `presented` when the server presents a certificate that is accepted. */
    public X509ExtendedTrustManager telling(Runnable presented) {
        return new Telling(judge, presented);
    }

    private static X509ExtendedTrustManager verifier(Path anchors) throws Failure {
        try {
            TrustManagerFactory factory = TrustManagerFactory.getInstance("PKIX");
            factory.init(Pem.authorities(anchors));
            return (X509ExtendedTrustManager) factory.getTrustManagers()[0];
        } catch (GeneralSecurityException error) {
            throw new Failure(ErrorKind.OTHER, "setting up trust: " + error);
        }
    }

    private static final class Telling extends X509ExtendedTrustManager {
        private final X509ExtendedTrustManager judge;
        private final Runnable presented;

        Telling(X509ExtendedTrustManager judge, Runnable presented) {
            this.judge = judge;
            this.presented = presented;
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine)
            throws CertificateException {
            if (judge != null) {
                judge.checkServerTrusted(chain, type, engine);
            }
            presented.run();
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket)
            throws CertificateException {
            if (judge != null) {
                judge.checkServerTrusted(chain, type, socket);
            }
            presented.run();
        }

        @Override
        public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
            if (judge != null) {
                // Kinds of key exchange belong to earlier versions of TLS; this one demands a key that signs.
                judge.checkServerTrusted(chain, "UNKNOWN");
            }
            presented.run();
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine)
            throws CertificateException {
            throw new CertificateException("clients present no certificates here");
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket)
            throws CertificateException {
            throw new CertificateException("clients present no certificates here");
        }

        @Override
        public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
            throw new CertificateException("clients present no certificates here");
        }

        @Override
        public X509Certificate[] getAcceptedIssuers() {
            return new X509Certificate[0];
        }
    }
}
