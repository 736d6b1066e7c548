package wirelab.netty;

import io.netty.bootstrap.Bootstrap;
import io.netty.channel.ChannelException;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelHandler;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOption;
import io.netty.channel.socket.nio.NioSocketChannel;
import io.netty.handler.ssl.SslHandler;
import java.io.IOException;
import java.nio.channels.SocketChannel;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import wirelab.client.Connection;
import wirelab.contract.ClientSpec;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Unsupported;
import wirelab.net.TcpSettings;
import wirelab.net.Tickets;
import wirelab.net.Trust;

/** Clients of HTTP/1.1 and HTTP/2. */
final class TcpTransport extends NettyTransport {
    /** Null in clear text. */
    final Tickets tickets;
    /** Null in HTTP/1.1, which has none. */
    final Http2Windows windows;
    private final TcpSettings settings;
    private final Bootstrap bootstrap;

    TcpTransport(ClientSpec spec) throws Failure {
        super(spec);
        if (spec.resumption.equals("zero_rtt")) {
            throw new Unsupported("spec: `resumption` = `zero_rtt`: the TLS of the JDK has no 0-RTT");
        }
        tickets = spec.protocol.isSecure()
            ? new Tickets(new Trust(spec.trustAnchor, spec.verify), spec.resumption.equals("resume")) : null;
        windows = spec.protocol.multiplexes() ? new Http2Windows(spec.transport) : null;
        if (windows != null) {
            configured.putAll(windows.configured());
        }
        settings = new TcpSettings(spec.transport);
        try {
            configured.putAll(settings.probe());
        } catch (IOException error) {
            throw new Failure(ErrorKind.OTHER, "making a socket: " + error.getMessage());
        }
        // Nothing is read before its handler exists: a server of HTTP/2 speaks first, and Netty drops bytes without a handler.
        bootstrap = new Bootstrap().group(loops).channelFactory(this::socket).handler(new Nothing())
            .option(ChannelOption.AUTO_READ, false)
            .option(ChannelOption.CONNECT_TIMEOUT_MILLIS, 0); // the engine has one
    }

    private NioSocketChannel socket() {
        try {
            SocketChannel socket = SocketChannel.open();
            settings.apply(socket);
            return new NioSocketChannel(socket);
        } catch (IOException error) {
            throw new ChannelException(error);
        }
    }

    /** Netty demands a handler before the connection exists. */
    @ChannelHandler.Sharable
    private static final class Nothing extends ChannelInboundHandlerAdapter {
    }

    ChannelFuture connect() {
        return bootstrap.connect(addresses.next());
    }

    SslHandler tls(Tickets.Slot slot) {
        SSLEngine engine = slot.context().createSSLEngine(spec.serverName, spec.port);
        engine.setUseClientMode(true);
        SSLParameters parameters = engine.getSSLParameters();
        parameters.setProtocols(new String[] {"TLSv1.3"});
        parameters.setApplicationProtocols(new String[] {spec.protocol.alpn});
        parameters.setEndpointIdentificationAlgorithm(spec.verify ? "HTTPS" : null);
        engine.setSSLParameters(parameters);
        SslHandler handler = new SslHandler(engine);
        handler.setHandshakeTimeoutMillis(0); // the engine has one
        return handler;
    }

    /** The active settings of the first socket, which is the check request's. */
    void readBack(SocketChannel socket) {
        try {
            configured.putAll(settings.configured(socket));
        } catch (IOException | RuntimeException gone) {
            // The probe's values stay.
        }
    }

    @Override
    public Connection prepare() throws Failure {
        return spec.protocol.multiplexes() ? new Http2Connection(this) : new Http1Connection(this);
    }

    @Override
    public int tickets() {
        return tickets.stored();
    }
}
