package wirelab.netty;

import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.ssl.SslHandler;
import io.netty.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import wirelab.client.Connection;
import wirelab.client.Exchange;
import wirelab.client.Opening;
import wirelab.contract.ErrorKind;
import wirelab.contract.Failure;
import wirelab.contract.Handshake;
import wirelab.net.Tickets;
import wirelab.net.TlsFacts;

/** A connection over TCP, with TLS or without, whatever is spoken over it. */
abstract class TcpConnection implements Connection {
    /** The interval and the number of checks for the ticket. */
    private static final long TICKET_WAIT_NS = 1_000_000;
    private static final int TICKET_WAITS = 20;

    final TcpTransport transport;
    private final Tickets.Slot slot;
    private volatile Channel channel;
    private volatile Handshake handshake;
    private volatile boolean closed;

    TcpConnection(TcpTransport transport) throws Failure {
        this.transport = transport;
        this.slot = transport.tickets == null ? null : transport.tickets.borrow();
    }

    /** Adds what speaks the protocol to a channel that is connected. */
    abstract void speak(ChannelPipeline pipeline);

    /** Sends a request, in the channel's thread. */
    abstract void request(Channel channel, Exchange exchange);

    @Override
    public final void open(Opening opening) {
        ChannelFuture connecting = transport.connect();
        channel = connecting.channel();
        connecting.addListener(done -> {
            long now = System.nanoTime();
            if (!done.isSuccess()) {
                opening.failed(Faults.of("connecting to " + transport.spec.address + " port " + transport.spec.port,
                    done.cause()));
                return;
            }
            opening.connected(now);
            if (slot == null) {
                speak(channel.pipeline());
                channel.config().setAutoRead(true);
                opening.opened(now);
            } else {
                SslHandler tls = transport.tls(slot);
                tls.handshakeFuture().addListener(shaken -> handshaken(opening, tls, shaken));
                channel.pipeline().addLast(tls);
                channel.config().setAutoRead(true);
            }
        });
    }

    private void handshaken(Opening opening, SslHandler tls, Future<?> shaken) {
        long now = System.nanoTime();
        if (!shaken.isSuccess()) {
            opening.failed(Faults.of("the TLS handshake with " + transport.spec.address, shaken.cause()));
            return;
        }
        String negotiated = tls.engine().getApplicationProtocol();
        if (!transport.spec.protocol.alpn.equals(negotiated)) {
            opening.failed(ErrorKind.PROTOCOL, "the server negotiated `" + negotiated + "`");
            return;
        }
        handshake = slot.proven();
        if (!transport.configured.containsKey("cipher")) {
            TlsFacts.add(transport.configured, tls.engine().getSession(), negotiated);
        }
        speak(channel.pipeline());
        opening.opened(now);
    }

    @Override
    public final void send(Exchange exchange) {
        run(() -> {
            if (!exchange.isSettled()) {
                request(channel, exchange);
            }
        });
    }

    /** In the channel's thread: now, if this is it. */
    final void run(Runnable step) {
        if (channel.eventLoop().inEventLoop()) {
            step.run();
        } else {
            channel.eventLoop().execute(step);
        }
    }

    /** No further request may be sent over it. */
    final void retire() {
        closed = true;
    }

    @Override
    public final boolean isOpen() {
        return !closed && channel.isActive();
    }

    @Override
    public final Handshake handshake() {
        return handshake;
    }

    @Override
    public final void close(Runnable then) {
        if (transport.tickets != null && transport.tickets.areWanted() && handshake != null && isOpen()) {
            awaitTicket(TICKET_WAITS, then);
        } else {
            end(then);
        }
    }

    private void awaitTicket(int waits, Runnable then) {
        if (waits > 0 && !slot.hasTicket()) {
            channel.eventLoop().schedule(() -> awaitTicket(waits - 1, then), TICKET_WAIT_NS, TimeUnit.NANOSECONDS);
            return;
        }
        transport.tickets.giveBack(slot);
        end(then);
    }

    private void end(Runnable then) {
        closed = true;
        if (channel == null) {
            then.run();
        } else {
            channel.close().addListener(done -> then.run());
        }
    }
}
