package wirelab.jetty;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.nio.ByteBuffer;
import org.eclipse.jetty.quic.quiche.Quiche;
import org.eclipse.jetty.quic.quiche.QuicheBinding;
import org.eclipse.jetty.quic.quiche.QuicheConfig;
import org.eclipse.jetty.quic.quiche.jna.JnaQuicheBinding;

/** Jetty's binding to quiche. Jetty finds it as a service before its own binding, which this one uses. */
public final class CarefulBinding implements QuicheBinding {
    private final QuicheBinding own = new JnaQuicheBinding();

    @Override
    public Throwable initialize() {
        return own.initialize();
    }

    /** The least number is taken first. */
    @Override
    public int priority() {
        return own.priority() - 1;
    }

    @Override
    public byte[] fromPacket(ByteBuffer packet) {
        return own.fromPacket(packet);
    }

    @Override
    public Quiche connect(QuicheConfig config, InetSocketAddress local, InetSocketAddress peer, int length) throws IOException {
        return new CarefulQuiche(own.connect(config, local, peer, length));
    }

    @Override
    public boolean negotiate(Quiche.TokenMinter minter, ByteBuffer packet, ByteBuffer answer) throws IOException {
        return own.negotiate(minter, packet, answer);
    }

    @Override
    public Quiche tryAccept(QuicheConfig config, Quiche.TokenValidator validator, ByteBuffer packet, SocketAddress local,
        SocketAddress peer) throws IOException {
        Quiche accepted = own.tryAccept(config, validator, packet, local, peer);
        return accepted == null ? null : new CarefulQuiche(accepted);
    }
}
