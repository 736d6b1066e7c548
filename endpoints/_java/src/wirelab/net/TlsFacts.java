package wirelab.net;

import java.security.cert.Certificate;
import java.security.cert.CertificateEncodingException;
import java.util.Map;
import javax.net.ssl.SSLPeerUnverifiedException;
import javax.net.ssl.SSLSession;

/** The facts of a session. JSSE does not report the key exchange group. */
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
            // Not reported: absent.
        }
    }
}
