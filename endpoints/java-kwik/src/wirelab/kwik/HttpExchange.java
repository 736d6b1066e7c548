package wirelab.kwik;

import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.concurrent.CompletableFuture;
import tech.kwik.flupke.impl.Http3ClientConnectionImpl;
import wirelab.client.Exchange;
import wirelab.net.CountedBody;

/** A request of HTTP/3. */
final class HttpExchange {
    private HttpExchange() {
    }

    /** Sends it and waits for the head of the response; flupke reads its body in a thread of its own. */
    static void run(Http3ClientConnectionImpl connection, HttpRequest request, Exchange exchange) {
        CompletableFuture<HttpResponse<Long>> result = new CompletableFuture<>();
        result.whenComplete((response, error) -> {
            if (error != null) {
                exchange.fail(Faults.of(request.method() + " " + request.uri().getRawPath(), error));
            } else if (response.body() != null) {
                exchange.complete(response.body());
            } else { // flupke makes a response of some errors
                exchange.status(response.statusCode());
                exchange.complete(System.nanoTime());
            }
        });
        connection.sendAsync(request, head -> {
            exchange.firstByte(System.nanoTime());
            exchange.status(head.statusCode());
            return new CountedBody(exchange);
        }, result);
    }
}
