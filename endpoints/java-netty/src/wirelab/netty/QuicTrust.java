package wirelab.netty;

import java.net.Socket;
import java.security.cert.CertificateException;
import java.security.cert.X509Certificate;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.X509ExtendedTrustManager;
import wirelab.contract.ClientSpec;
import wirelab.contract.Failure;
import wirelab.net.Trust;

/** Judges certificates for BoringSSL, and remembers its judgement of each connection, which Netty does not pass on. */
final class QuicTrust extends X509ExtendedTrustManager {
    /** An accepted certificate proves a full handshake: a resumed one has none (RFC 8446, section 2.2). */
    static final Object ACCEPTED = "accepted";

    private final X509ExtendedTrustManager judge;
    private final Map<SSLEngine, Object> judgements = new ConcurrentHashMap<>();

    QuicTrust(ClientSpec spec) throws Failure {
        judge = new Trust(spec.trustAnchor, spec.verify).telling(() -> { });
    }

    /** `ACCEPTED`, or the exception; null: no certificate was presented. It is forgotten then. */
    Object judgement(SSLEngine engine) {
        return engine == null ? null : judgements.remove(engine);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        try {
            judge.checkServerTrusted(chain, type, engine);
            judgements.put(engine, ACCEPTED);
        } catch (CertificateException rejected) {
            judgements.put(engine, rejected);
            throw rejected;
        }
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        judge.checkServerTrusted(chain, type, socket);
    }

    @Override
    public void checkServerTrusted(X509Certificate[] chain, String type) throws CertificateException {
        judge.checkServerTrusted(chain, type);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, SSLEngine engine) throws CertificateException {
        judge.checkClientTrusted(chain, type, engine);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type, Socket socket) throws CertificateException {
        judge.checkClientTrusted(chain, type, socket);
    }

    @Override
    public void checkClientTrusted(X509Certificate[] chain, String type) throws CertificateException {
        judge.checkClientTrusted(chain, type);
    }

    @Override
    public X509Certificate[] getAcceptedIssuers() {
        return judge.getAcceptedIssuers();
    }
}
