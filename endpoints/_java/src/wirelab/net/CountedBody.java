package wirelab.net;

import java.net.http.HttpResponse.BodySubscriber;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Flow;
import wirelab.client.Exchange;

/** A response's body: counted and discarded. Its result is the moment of the last byte. */
public final class CountedBody implements BodySubscriber<Long> {
    private final Exchange exchange;
    private final CompletableFuture<Long> end = new CompletableFuture<>();

    public CountedBody(Exchange exchange) {
        this.exchange = exchange;
    }

    @Override
    public void onSubscribe(Flow.Subscription subscription) {
        subscription.request(Long.MAX_VALUE);
    }

    @Override
    public void onNext(List<ByteBuffer> pieces) {
        for (ByteBuffer piece : pieces) {
            exchange.body(piece);
        }
    }

    @Override
    public void onError(Throwable error) {
        end.completeExceptionally(error);
    }

    @Override
    public void onComplete() {
        end.complete(System.nanoTime());
    }

    @Override
    public CompletionStage<Long> getBody() {
        return end;
    }
}
