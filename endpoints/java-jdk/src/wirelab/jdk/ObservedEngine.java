package wirelab.jdk;

import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.BiFunction;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLEngineResult;
import javax.net.ssl.SSLEngineResult.HandshakeStatus;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLSession;

/** The platform's engine, which reports the end of the handshake, and offers the one ALPN identifier of the spec. */
final class ObservedEngine extends SSLEngine {
    private final SSLEngine own;
    private final JdkConnection connection;

    ObservedEngine(SSLEngine own, JdkConnection connection) {
        super(own.getPeerHost(), own.getPeerPort());
        this.own = own;
        this.connection = connection;
    }

    private SSLEngineResult noted(SSLEngineResult result) throws SSLException {
        if (result.getHandshakeStatus() == HandshakeStatus.FINISHED) {
            connection.handshaken(own, System.nanoTime());
        }
        return result;
    }

    @Override
    public SSLEngineResult wrap(ByteBuffer[] from, int offset, int length, ByteBuffer to) throws SSLException {
        return noted(own.wrap(from, offset, length, to));
    }

    @Override
    public SSLEngineResult unwrap(ByteBuffer from, ByteBuffer[] to, int offset, int length) throws SSLException {
        return noted(own.unwrap(from, to, offset, length));
    }

    @Override
    public void setSSLParameters(SSLParameters parameters) {
        parameters.setApplicationProtocols(new String[] {connection.alpn()});
        parameters.setProtocols(new String[] {"TLSv1.3"});
        own.setSSLParameters(parameters);
    }

    @Override
    public SSLParameters getSSLParameters() {
        return own.getSSLParameters();
    }

    @Override
    public Runnable getDelegatedTask() {
        return own.getDelegatedTask();
    }

    @Override
    public void closeInbound() throws SSLException {
        own.closeInbound();
    }

    @Override
    public boolean isInboundDone() {
        return own.isInboundDone();
    }

    @Override
    public void closeOutbound() {
        own.closeOutbound();
    }

    @Override
    public boolean isOutboundDone() {
        return own.isOutboundDone();
    }

    @Override
    public String[] getSupportedCipherSuites() {
        return own.getSupportedCipherSuites();
    }

    @Override
    public String[] getEnabledCipherSuites() {
        return own.getEnabledCipherSuites();
    }

    @Override
    public void setEnabledCipherSuites(String[] suites) {
        own.setEnabledCipherSuites(suites);
    }

    @Override
    public String[] getSupportedProtocols() {
        return own.getSupportedProtocols();
    }

    @Override
    public String[] getEnabledProtocols() {
        return own.getEnabledProtocols();
    }

    @Override
    public void setEnabledProtocols(String[] protocols) {
        own.setEnabledProtocols(protocols);
    }

    @Override
    public SSLSession getSession() {
        return own.getSession();
    }

    @Override
    public SSLSession getHandshakeSession() {
        return own.getHandshakeSession();
    }

    @Override
    public void beginHandshake() throws SSLException {
        own.beginHandshake();
    }

    @Override
    public HandshakeStatus getHandshakeStatus() {
        return own.getHandshakeStatus();
    }

    @Override
    public void setUseClientMode(boolean mode) {
        own.setUseClientMode(mode);
    }

    @Override
    public boolean getUseClientMode() {
        return own.getUseClientMode();
    }

    @Override
    public void setNeedClientAuth(boolean need) {
        own.setNeedClientAuth(need);
    }

    @Override
    public boolean getNeedClientAuth() {
        return own.getNeedClientAuth();
    }

    @Override
    public void setWantClientAuth(boolean want) {
        own.setWantClientAuth(want);
    }

    @Override
    public boolean getWantClientAuth() {
        return own.getWantClientAuth();
    }

    @Override
    public void setEnableSessionCreation(boolean flag) {
        own.setEnableSessionCreation(flag);
    }

    @Override
    public boolean getEnableSessionCreation() {
        return own.getEnableSessionCreation();
    }

    @Override
    public String getApplicationProtocol() {
        return own.getApplicationProtocol();
    }

    @Override
    public String getHandshakeApplicationProtocol() {
        return own.getHandshakeApplicationProtocol();
    }

    @Override
    public void setHandshakeApplicationProtocolSelector(BiFunction<SSLEngine, List<String>, String> selector) {
        own.setHandshakeApplicationProtocolSelector(selector);
    }

    @Override
    public BiFunction<SSLEngine, List<String>, String> getHandshakeApplicationProtocolSelector() {
        return own.getHandshakeApplicationProtocolSelector();
    }
}
