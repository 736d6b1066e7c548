package wirelab.kwik;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import tech.kwik.agent15.TlsConstants.NamedGroup;
import tech.kwik.agent15.engine.TlsClientEngine;
import tech.kwik.core.QuicClientConnection;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;

/**
 * Stands before the TLS engine of a connection, for two settings that kwik 0.10.8 lacks. It offers X25519, as the other
 * endpoints do, and not secp256r1. It holds the server's messages back until the engine has sent its own first one:
 * agent15 3.1 expects an answer only after that, and drops a faster ServerHello, so that the handshake hangs.
 */
final class TlsEngines {
    private TlsEngines() {
    }

    /** Returns the connection's own engine. */
    static TlsClientEngine guard(QuicClientConnection connection) throws Failure {
        try {
            Field field = connection.getClass().getDeclaredField("tlsEngine");
            field.setAccessible(true);
            TlsClientEngine own = (TlsClientEngine) field.get(connection);
            field.set(connection, Proxy.newProxyInstance(TlsEngines.class.getClassLoader(),
                new Class<?>[] {TlsClientEngine.class}, (proxy, method, arguments) -> call(own, method, arguments)));
            return own;
        } catch (ReflectiveOperationException error) {
            throw new Failure(ErrorKind.OTHER, "choosing the key exchange of kwik: " + error);
        }
    }

    private static Object call(TlsClientEngine own, Method method, Object[] arguments) throws Throwable {
        if (method.getName().equals("startHandshake") && arguments != null && arguments.length == 2) {
            arguments[0] = NamedGroup.x25519;
        }
        try {
            synchronized (own) {
                return method.invoke(own, arguments);
            }
        } catch (InvocationTargetException thrown) {
            throw thrown.getCause();
        }
    }
}
