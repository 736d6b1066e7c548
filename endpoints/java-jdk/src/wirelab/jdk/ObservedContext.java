package wirelab.jdk;

import java.security.KeyManagementException;
import java.security.SecureRandom;
import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;

/** A TLS context whose engines report the end of the handshake to a connection. */
final class ObservedContext extends SSLContext {
    ObservedContext(SSLContext own, JdkConnection connection) {
        super(new Spi(own, connection), own.getProvider(), own.getProtocol());
    }

    private static final class Spi extends SSLContextSpi {
        private final SSLContext own;
        private final JdkConnection connection;

        Spi(SSLContext own, JdkConnection connection) {
            this.own = own;
            this.connection = connection;
        }

        @Override
        protected void engineInit(KeyManager[] keys, TrustManager[] trust, SecureRandom random)
            throws KeyManagementException {
            throw new KeyManagementException("it is initialised already");
        }

        @Override
        protected SSLEngine engineCreateSSLEngine() {
            return new ObservedEngine(own.createSSLEngine(), connection);
        }

        @Override
        protected SSLEngine engineCreateSSLEngine(String host, int port) {
            return new ObservedEngine(own.createSSLEngine(host, port), connection);
        }

        @Override
        protected SSLSocketFactory engineGetSocketFactory() {
            return own.getSocketFactory();
        }

        @Override
        protected SSLServerSocketFactory engineGetServerSocketFactory() {
            return own.getServerSocketFactory();
        }

        @Override
        protected SSLSessionContext engineGetServerSessionContext() {
            return own.getServerSessionContext();
        }

        @Override
        protected SSLSessionContext engineGetClientSessionContext() {
            return own.getClientSessionContext();
        }

        @Override
        protected SSLParameters engineGetDefaultSSLParameters() {
            return own.getDefaultSSLParameters();
        }

        @Override
        protected SSLParameters engineGetSupportedSSLParameters() {
            return own.getSupportedSSLParameters();
        }
    }
}
