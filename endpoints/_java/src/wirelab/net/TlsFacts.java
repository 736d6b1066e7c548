package wirelab.net;

import java.security.cert.Certificate;
import java.security.cert.CertificateEncodingException;
import java.util.Map;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;

/** What a session tells of itself. JSSE does not tell the key exchange group. */
public final class TlsFacts {
    private TlsFacts() {
    }

    public static void add(Map<String, Object> configured, SSLSession session, String alpn) {
        configured.put("alpn", alpn);
        configured.put("cipher", session.getCipherSuite());
        try {
            long bytes = 0;
            for (Certificate certificate : session.getPeerCertificates()) {
                bytes += certificate.getEncoded().length;
            }
            configured.put("certificate_chain_bytes", bytes);
        } catch (SSLPeerUnverifiedException | CertificateEncodingException unknown) {
            // Not told: absent.
        }
    }
}
