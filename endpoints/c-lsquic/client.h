// Declarations of the client's parts: client.c is the driver, connection.c has the connections, exchange.c the streams.
#ifndef CLIENT_H
#define CLIENT_H

#include <sys/queue.h>

#include "driver.h"
#include "gate.h"
#include "quic.h"

TAILQ_HEAD(owns, own);

// A connection of lsquic, until lsquic is done with it.
struct connection {
    lsquic_conn_t *cnx;  // NULL: it is gone
    struct gate gate;
    struct link *link;        // NULL: it takes no requests any more
    struct exchange *opener;  // the request that opened it, until it is ready
    struct owns waiting;      // for a stream
    struct owns asked;        // with a stream, for their answers
    uint32_t number;
    bool early, ready, ticketed, lingers;
    enum handshake handshake;
    int alert;                // of TLS, that was sent; 0: none
    bool closed, of_http;     // by the peer, with this code of HTTP/3 or QUIC
    uint64_t code;
    struct alarm ticket_wait, burial;
};

struct link {
    bool kept;
    struct connection *connection;
};

// The state of a request.
struct own {
    struct exchange *exchange;
    struct connection *connection;
    lsquic_stream_t *stream;
    uint64_t sent, announced;
    bool headed, announces, cut;
    TAILQ_ENTRY(own) next;  // among the waiting requests, or those that asked for a stream
};

static inline struct own *own_of(const struct exchange *exchange) {
    return exchange->own;
}

void connection_prepare(const struct spec *spec);
// Opens one for a request.
struct connection *connection_new(struct exchange *exchange);
// It takes no requests any more.
void connection_let_go(struct connection *connection);
// The active settings; a new reference.
json_object *connection_configured(void);
// A connection is still there to wait for its ticket.
bool connection_any_lingers(void);

void exchange_prepare(const struct spec *spec);
// The request waits for a stream of the connection.
void exchange_wait(struct exchange *exchange, struct connection *connection);
// Asks lsquic for a stream for it.
void exchange_ask(struct exchange *exchange);
// Gives the request up: no call about it follows.
void exchange_detach(struct exchange *exchange);
void exchange_end(struct exchange *exchange, enum kind failure, const char *why);

// lsquic's callbacks of streams.
lsquic_stream_ctx_t *exchange_streamed(void *of, lsquic_stream_t *stream);
void exchange_read(lsquic_stream_t *stream, lsquic_stream_ctx_t *own);
void exchange_write(lsquic_stream_t *stream, lsquic_stream_ctx_t *own);
void exchange_closed(lsquic_stream_t *stream, lsquic_stream_ctx_t *own);

#endif
