// The driver: a stream for each request, over connections that are kept or opened by each request.
#include <stdlib.h>

#include "client.h"
#include "request.h"
#include "serve.h"

static json_object *facts;

const struct library *driver_library(void) {
    static const char *const protocols[] = {"h3", NULL};
    static const char *const features[] = {"files", "bytes", "echo", "delay", "redirect", "heron", NULL};
    static const struct library library = {
        .endpoint = "c-picoquic",
        .name = "picoquic",
        .version = PICOQUIC_VERSION,
        .protocols = protocols,
        .features = features,
        .served = protocols,
        .offered = features,
        .serve = serve,
    };
    return &library;
}

void driver_prepare(const struct spec *spec) {
    request_prepare(spec);
    exchange_prepare(spec);
    connection_prepare(spec);
    facts = quic_configured(true);
}

json_object *driver_configured(void) {
    if (connection_proven()) {
        quic_configured_tls(facts);
    }
    json_object *copy = NULL;
    json_object_deep_copy(facts, &copy, NULL);
    return copy;
}

struct link *link_new(bool kept) {
    struct link *link = allocate(1, sizeof *link);
    link->kept = kept;
    return link;
}

void link_free(struct link *link) {
    if (link->connection) {
        connection_let_go(link->connection);
    }
    free(link);
}

void driver_finish(void) {
    quic_finish();
}

void driver_lane(struct exchange *exchange) {
    exchange->own = allocate(1, sizeof(struct own));
    http3_reset(&own_of(exchange)->read);
}

void driver_lane_free(struct exchange *exchange) {
    http3_reset(&own_of(exchange)->read);
    free(exchange->own);
}

void driver_send(struct exchange *exchange) {
    struct connection *connection = exchange->link->connection;
    own_of(exchange)->asked = false;
    connection = connection ? connection : connection_new(exchange);
    exchange_attach(exchange, connection);
    if (connection->ready) {
        exchange_ask(exchange);
    }
    quic_due();
}

void driver_cancel(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    struct connection *connection = own->connection;
    if (own->asked) {
        picoquic_discard_stream(connection->cnx, own->stream, H3ZERO_REQUEST_CANCELLED);
    } else {
        exchange->record.bytes_out = 0;
    }
    exchange_detach(exchange);
    if (connection->opener == exchange) {
        connection->opener = NULL;
    }
    // Gives up a handshake without a waiting request.
    if (!exchange->link->kept || (!connection->ready && !connection->exchanges)) {
        connection_let_go(connection);
    }
    quic_due();
}
