package wirelab.netty;

import io.netty.channel.Channel;
import io.netty.channel.ChannelPipeline;
import io.netty.handler.codec.http.HttpClientCodec;
import wirelab.client.Exchange;
import wirelab.contract.Failure;

/** HTTP/1.1: one request after the other. */
final class Http1Connection extends TcpConnection {
    private final ResponseHandler responses = new ResponseHandler(transport.requests.attempt(), () -> null);

    Http1Connection(TcpTransport transport) throws Failure {
        super(transport);
    }

    @Override
    void speak(ChannelPipeline pipeline) {
        pipeline.addLast(new HttpClientCodec());
        transport.requests.prepare(pipeline);
        pipeline.addLast(responses);
    }

    @Override
    void request(Channel channel, Exchange exchange) {
        responses.expect(exchange);
        transport.requests.send(channel, exchange);
    }
}
