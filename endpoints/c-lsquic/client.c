// The driver: a stream for each request, over connections that are kept or opened by each request.
#include <stdlib.h>

#include "client.h"
#include "loop.h"
#include "serve.h"
#include "tickets.h"

static const struct spec *spec;

const struct library *driver_library(void) {
    static const char *const protocols[] = {"h3", NULL};
    static const char *const features[] = {"files", "bytes", "echo", "delay", "redirect", "heron", NULL};
    static const struct library library = {
        .endpoint = "c-lsquic",
        .name = "lsquic",
        .version = LSQUIC_VERSION_STR,
        .protocols = protocols,
        .features = features,
        .sets_quic = true,
        .served = protocols,
        .offered = features,
        .serve = serve,
    };
    return &library;
}

void driver_prepare(const struct spec *of) {
    spec = of;
    exchange_prepare(spec);
    connection_prepare(spec);
}

json_object *driver_configured(void) {
    return connection_configured();
}

struct link *link_new(bool kept) {
    struct link *link = allocate(1, sizeof *link);
    link->kept = kept;
    return link;
}

static bool is_ticket_there(void) {
    return tickets_any() || !connection_any_lingers();
}

static void nothing(void) {}

void link_free(struct link *link) {
    if (link->connection) {
        connection_let_go(link->connection);
    }
    // The next connection could resume nothing yet.
    if (spec->resumes) {
        loop_until(is_ticket_there, nothing);
    }
    free(link);
}

static bool is_all_over(void) {
    return !connection_any_lingers();
}

void driver_finish(void) {
    loop_until(is_all_over, nothing);
    quic_finish();
}

void driver_lane(struct exchange *exchange) {
    exchange->own = allocate(1, sizeof(struct own));
    own_of(exchange)->exchange = exchange;
}

void driver_lane_free(struct exchange *exchange) {
    free(exchange->own);
}

void driver_send(struct exchange *exchange) {
    struct connection *connection = exchange->link->connection;
    connection = connection ? connection : connection_new(exchange);
    exchange_wait(exchange, connection);
    if (connection->ready || connection->early) {
        exchange_ask(exchange);
    }
    quic_due();
}

void driver_cancel(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    struct connection *connection = own->connection;
    if (!own->stream) {
        exchange->record.bytes_out = 0;
    }
    exchange_detach(exchange);
    // Gives up a handshake without a waiting request.
    if (!exchange->link->kept || (!connection->ready && TAILQ_EMPTY(&connection->waiting) && TAILQ_EMPTY(&connection->asked))) {
        connection_let_go(connection);
    }
    quic_due();
}
