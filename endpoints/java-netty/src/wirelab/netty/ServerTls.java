package wirelab.netty;

import io.netty.handler.codec.quic.QuicSslContext;
import io.netty.handler.codec.quic.QuicSslContextBuilder;
import io.netty.handler.codec.quic.SslSessionTicketKey;
import io.netty.handler.ssl.ApplicationProtocolConfig;
import io.netty.handler.ssl.ApplicationProtocolConfig.Protocol;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectedListenerFailureBehavior;
import io.netty.handler.ssl.ApplicationProtocolConfig.SelectorFailureBehavior;
import io.netty.handler.ssl.SslContext;
import io.netty.handler.ssl.SslContextBuilder;
import io.netty.handler.ssl.SslProvider;
import java.security.SecureRandom;
import javax.net.ssl.SSLException;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.ServerSpec;
import wirelab.contract.Unsupported;
import wirelab.net.Pem;

/** TLS of a server: by the JDK over TCP, by BoringSSL within quiche. */
final class ServerTls {
    /** JSSE gives no tickets where sessions would live longer than a ticket may, a week (RFC 8446, section 4.6.1). */
    private static final long LONGER_THAN_TICKETS_S = 604_801;

    private ServerTls() {
    }

    static SslContext overTcp(ServerSpec spec) throws Failure {
        if (spec.earlyData) {
            throw new Unsupported("tls: `early_data` = true: the TLS of the JDK has no 0-RTT");
        }
        try {
            SslContextBuilder builder = SslContextBuilder.forServer(Pem.key(spec.key), Pem.certificates(spec.certificate))
                .sslProvider(SslProvider.JDK).protocols("TLSv1.3")
                .applicationProtocolConfig(new ApplicationProtocolConfig(Protocol.ALPN, SelectorFailureBehavior.FATAL_ALERT,
                    SelectedListenerFailureBehavior.ACCEPT, spec.protocol.alpn));
            if (!spec.resumption) {
                builder.sessionTimeout(LONGER_THAN_TICKETS_S);
            }
            return builder.build();
        } catch (SSLException error) {
            throw new Failure(ErrorKind.OTHER, "setting up TLS: " + error.getMessage());
        }
    }

    static QuicSslContext overQuic(ServerSpec spec) throws Failure {
        if (spec.earlyData) {
            throw new Unsupported("tls: `early_data` = true, with h3: it could not be proven that Netty accepts any");
        }
        QuicSslContextBuilder builder = QuicSslContextBuilder.forServer(Pem.key(spec.key), null, Pem.certificates(spec.certificate))
            .applicationProtocols(spec.protocol.alpn);
        KeyLog secrets = KeyLog.take(spec.tls);
        if (secrets != null) {
            builder.keylog(secrets);
        }
        return builder.build();
    }

    /** Makes the tickets worthless that were given until now. Netty has no way not to give any over QUIC. */
    static void forgetTickets(QuicSslContext context) {
        context.sessionContext().setTicketKeys(new SslSessionTicketKey(random(SslSessionTicketKey.NAME_SIZE), random(SslSessionTicketKey.HMAC_KEY_SIZE),
            random(SslSessionTicketKey.AES_KEY_SIZE)));
    }

    private static byte[] random(int size) {
        byte[] bytes = new byte[size];
        new SecureRandom().nextBytes(bytes);
        return bytes;
    }
}
