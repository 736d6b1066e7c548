package wirelab.kwik;

import java.io.OutputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.function.UnaryOperator;
import tech.kwik.core.QuicClientConnection;
import tech.kwik.core.QuicStream;
import tech.kwik.core.server.ApplicationProtocolConnection;
import tech.kwik.core.server.ApplicationProtocolConnectionFactory;

/** Gives flupke, which writes to kwik's streams itself, streams whose output is sure to be sent. */
final class SureStreams {
    private SureStreams() {
    }

    /** A client's connection with such streams. */
    static QuicClientConnection of(QuicClientConnection own) {
        return with(QuicClientConnection.class, own, "createStream", stream -> of((QuicStream) stream));
    }

    /** A server's protocol that is given such streams. */
    static ApplicationProtocolConnectionFactory of(ApplicationProtocolConnectionFactory own) {
        return with(ApplicationProtocolConnectionFactory.class, own, "createConnection", made -> {
            ApplicationProtocolConnection connection = (ApplicationProtocolConnection) made;
            return new ApplicationProtocolConnection() {
                @Override
                public void acceptPeerInitiatedStream(QuicStream stream) {
                    connection.acceptPeerInitiatedStream(of(stream));
                }
            };
        });
    }

    private static QuicStream of(QuicStream own) {
        return with(QuicStream.class, own, "getOutputStream", out -> new SureOutput((OutputStream) out));
    }

    /** An object that delegates to another one, except for the result of one method. */
    private static <T> T with(Class<T> type, T own, String method, UnaryOperator<Object> change) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, called, arguments) -> {
            try {
                Object result = called.invoke(own, arguments);
                return called.getName().equals(method) ? change.apply(result) : result;
            } catch (InvocationTargetException thrown) {
                throw thrown.getCause();
            }
        }));
    }
}
