package wirelab.kwik;

import java.lang.reflect.Field;
import java.util.List;
import tech.kwik.agent15.TlsConstants;
import tech.kwik.agent15.engine.TlsSession;
import tech.kwik.agent15.engine.TlsSessionRegistry;
import tech.kwik.agent15.engine.impl.TlsSessionRegistryImpl;
import tech.kwik.agent15.engine.impl.TlsState;
import tech.kwik.agent15.extension.ClientHelloPreSharedKeyExtension.PskIdentity;
import tech.kwik.agent15.handshake.NewSessionTicketMessage;
import tech.kwik.core.server.ServerConnector;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/**
 * A register of sessions that resumes none. kwik has no switch for it, so it replaces kwik's own by reflection. The ticket
 * that kwik's server always sends has a lifetime of 0: the client must discard it at once (RFC 8446, section 4.6.1).
 */
final class NoTickets implements TlsSessionRegistry {
    private final TlsSessionRegistryImpl own = new TlsSessionRegistryImpl(0);

    static void install(ServerConnector connector) throws Failure {
        try {
            Field factory = connector.getClass().getDeclaredField("tlsEngineFactory");
            factory.setAccessible(true);
            Object engines = factory.get(connector);
            Field registry = engines.getClass().getDeclaredField("tlsSessionRegistry");
            registry.setAccessible(true);
            registry.set(engines, new NoTickets());
        } catch (ReflectiveOperationException error) {
            throw new Failure(ErrorKind.OTHER, "turning session tickets off in kwik: " + error);
        }
    }

    @Override
    public NewSessionTicketMessage createNewSessionTicketMessage(
        byte nonce, TlsConstants.CipherSuite cipher, TlsState state, String protocol) {
        return own.createNewSessionTicketMessage(nonce, cipher, state, protocol);
    }

    @Override
    public NewSessionTicketMessage createNewSessionTicketMessage(
        byte nonce, TlsConstants.CipherSuite cipher, TlsState state, String protocol, Long early, byte[] data) {
        return own.createNewSessionTicketMessage(nonce, cipher, state, protocol, early, data);
    }

    @Override
    public Integer selectIdentity(List<PskIdentity> identities, TlsConstants.CipherSuite cipher) {
        return null;
    }

    @Override
    public TlsSession useSession(PskIdentity identity) {
        return null;
    }

    @Override
    public byte[] peekSessionData(PskIdentity identity) {
        return null;
    }

    @Override
    public void shutdown() {
        own.shutdown();
    }
}
