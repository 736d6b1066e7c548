package wirelab.netty;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.socket.nio.NioDatagramChannel;
import io.netty.handler.codec.http3.Http3;
import io.netty.handler.codec.quic.QuicClientCodecBuilder;
import io.netty.handler.codec.quic.QuicSslContext;
import io.netty.handler.codec.quic.QuicSslContextBuilder;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.StandardProtocolFamily;
import java.nio.channels.DatagramChannel;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import wirelab.client.Connection;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Unsupported;

/** Clients of HTTP/3. Each event loop has one socket, which its connections share. */
final class QuicTransport extends NettyTransport {
    final QuicTrust trust;
    final QuicSettings settings;
    private final List<Channel> sockets = new ArrayList<>();
    private final AtomicInteger turns = new AtomicInteger();

    QuicTransport(ClientSpec spec) throws Failure {
        super(spec);
        if (!spec.resumption.equals("none")) {
            throw new Unsupported("spec: `resumption` = `" + spec.resumption + "`, with h3: Netty does not say whether "
                + "there is a ticket, nor whether early data was accepted");
        }
        settings = new QuicSettings(spec.transport, spec.rest);
        trust = new QuicTrust(spec);
        QuicSslContext tls = tls();
        QuicClientCodecBuilder codec = settings.apply(Http3.newQuicClientCodecBuilder())
            .sslEngineProvider(connection -> tls.newEngine(connection.alloc(), spec.serverName, spec.port));
        int threads = (int) configured.get("threads");
        for (int i = 0; i < threads; i++) {
            sockets.add(bind(codec));
        }
    }

    private QuicSslContext tls() throws Failure {
        QuicSslContextBuilder builder = QuicSslContextBuilder.forClient().trustManager(trust)
            .endpointIdentificationAlgorithm(spec.verify ? "HTTPS" : null).applicationProtocols(spec.protocol.alpn);
        KeyLog secrets = KeyLog.take(spec.tls);
        if (secrets != null) {
            builder.keylog(secrets);
        }
        QuicSslContext context = builder.build();
        context.sessionContext().setSessionCacheSize(0); // every handshake is a full one
        return context;
    }

    private Channel bind(QuicClientCodecBuilder codec) throws Failure {
        boolean six = addresses.isVersion6();
        try {
            DatagramChannel socket = DatagramChannel.open(six ? StandardProtocolFamily.INET6 : StandardProtocolFamily.INET);
            settings.apply(socket.socket());
            configured.putAll(settings.configured(socket.socket()));
            ChannelFuture bound = new Bootstrap().group(loops).channelFactory(() -> new NioDatagramChannel(socket))
                .handler(codec.build()).bind(new InetSocketAddress(six ? "::" : "0.0.0.0", 0)).awaitUninterruptibly();
            if (!bound.isSuccess()) {
                throw new Failure(ErrorKind.OTHER, "binding a socket: " + bound.cause().getMessage());
            }
            return bound.channel();
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making a socket: " + error.getMessage());
        }
    }

    /** The sockets in turn, so that each thread has as many connections as the others. */
    Channel socket() {
        return sockets.get(Math.floorMod(turns.getAndIncrement(), sockets.size()));
    }

    @Override
    public Connection prepare() {
        return new Http3Connection(this);
    }
}
