// Declarations of the client's parts: client.c is the driver, connection.c has the connections, exchange.c the streams.
#ifndef CLIENT_H
#define CLIENT_H

#include "driver.h"
#include "http3.h"

// A connection of picoquic, from its first packet until it is lost or let go.
struct connection {
    picoquic_cnx_t *cnx;
    h3zero_callback_ctx_t *http3;
    struct link *link;
    struct exchange *opener;     // the request that opened it, until it is ready
    struct exchange *exchanges;  // that wait for it, or for their answers
    uint32_t number;
    bool ready;
};

struct link {
    bool kept;
    struct connection *connection;
};

// The state of a request.
struct own {
    struct connection *connection;
    struct exchange *next, **link;  // among the connection's
    uint64_t stream, sent;
    h3zero_data_stream_state_t read;
    bool asked;  // it has a stream
};

static inline struct own *own_of(const struct exchange *exchange) {
    return exchange->own;
}

void connection_prepare(const struct spec *spec);
// Opens one for a request.
struct connection *connection_new(struct exchange *exchange);
// It takes no requests any more.
void connection_let_go(struct connection *connection);
// One was there, with the ALPN of the spec.
bool connection_proven(void);

void exchange_prepare(const struct spec *spec);
void exchange_attach(struct exchange *exchange, struct connection *connection);
void exchange_detach(struct exchange *exchange);
// Sends the request on a stream of its own.
void exchange_ask(struct exchange *exchange);
// A part of the response; its end.
void exchange_receive(struct exchange *exchange, uint8_t *bytes, size_t length, bool fin);
// Puts as much of the request's body into a packet as fits.
void exchange_provide(struct exchange *exchange, void *context, size_t room);
void exchange_end(struct exchange *exchange, enum kind failure, const char *why);

#endif
