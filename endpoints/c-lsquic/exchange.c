// Requests and their streams.
#include <errno.h>

#include "client.h"
#include "head.h"
#include "pattern.h"
#include "request.h"

static const struct spec *spec;

void exchange_prepare(const struct spec *of) {
    spec = of;
    request_prepare(spec);
    pattern_prepare();
}

void exchange_wait(struct exchange *exchange, struct connection *connection) {
    struct own *own = own_of(exchange);
    *own = (struct own){.exchange = exchange, .connection = connection};
    TAILQ_INSERT_TAIL(&connection->waiting, own, next);
}

void exchange_ask(struct exchange *exchange) {
    struct connection *connection = own_of(exchange)->connection;
    exchange->record.connection = connection->number;
    engine_ready(exchange);
    lsquic_conn_make_stream(connection->cnx);
    quic_due();
}

void exchange_detach(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    struct connection *connection = own->connection;
    lsquic_stream_t *stream = own->stream;
    TAILQ_REMOVE(stream ? &connection->asked : &connection->waiting, own, next);
    own->connection = NULL;
    own->stream = NULL;
    if (connection->opener == exchange) {
        connection->opener = NULL;
    }
    if (stream) {
        lsquic_stream_set_ctx(stream, NULL);
        lsquic_stream_close(stream);
    } else if (connection->cnx && (connection->ready || connection->early)) {
        lsquic_conn_cancel_pending_streams(connection->cnx, 1);
    }
}

void exchange_end(struct exchange *exchange, enum kind failure, const char *why) {
    struct connection *connection = own_of(exchange)->connection;
    exchange_detach(exchange);
    if (!exchange->link->kept || !connection->link) {
        connection_let_go(connection);
    }
    engine_ended(exchange, failure, why);
}

lsquic_stream_ctx_t *exchange_streamed(void *of, lsquic_stream_t *stream) {
    (void)of;
    struct connection *connection = stream ? (void *)lsquic_conn_get_ctx(lsquic_stream_conn(stream)) : NULL;
    struct own *own = connection ? TAILQ_FIRST(&connection->waiting) : NULL;
    if (!own) {
        if (stream) {
            lsquic_stream_close(stream);
        }
        return NULL;
    }
    TAILQ_REMOVE(&connection->waiting, own, next);
    TAILQ_INSERT_TAIL(&connection->asked, own, next);
    own->stream = stream;
    lsquic_stream_wantread(stream, 1);
    lsquic_stream_wantwrite(stream, 1);
    return (void *)own;
}

void exchange_write(lsquic_stream_t *stream, lsquic_stream_ctx_t *of) {
    struct own *own = (void *)of;
    if (!own) {
        lsquic_stream_wantwrite(stream, 0);
        return;
    }
    if (!own->headed && !request_send(stream)) {
        exchange_end(own->exchange, OTHER, "lsquic does not take the request's head");
        return;
    }
    own->headed = true;
    while (own->sent < spec->body_size) {
        size_t length;
        const uint8_t *bytes = pattern_at(own->sent, spec->body_size - own->sent, &length);
        ssize_t taken = lsquic_stream_write(stream, bytes, length);
        if (taken < 0) {
            lsquic_stream_wantwrite(stream, 0);  // the server needs no more of it; its answer may still come
            return;
        }
        if (taken == 0) {
            return;
        }
        own->sent += (uint64_t)taken;
    }
    lsquic_stream_shutdown(stream, 1);
}

static size_t take(void *of, const unsigned char *bytes, size_t length, int last) {
    struct own *own = of;
    struct record *r = &own->exchange->record;
    r->bytes_in += length;
    if (own->exchange->digest) {
        EVP_DigestUpdate(own->exchange->digest, bytes, length);
    }
    // lsquic loses the connection next.
    own->cut = last && own->announces && r->bytes_in < own->announced;
    return length;
}

static void read_head(struct own *own, lsquic_stream_t *stream) {
    struct head *head = lsquic_stream_get_hset(stream);
    if (!head) {
        return;
    }
    struct record *r = &own->exchange->record;
    r->first_byte = r->first_byte ? r->first_byte : now();
    // Ignores preliminary responses and trailers.
    if (head->status >= 200) {
        r->status = (uint16_t)head->status;
        own->announces = head->announces;
        own->announced = head->announced;
    }
    head_free(head);
}

void exchange_read(lsquic_stream_t *stream, lsquic_stream_ctx_t *of) {
    struct own *own = (void *)of;
    if (!own) {
        lsquic_stream_wantread(stream, 0);
        return;
    }
    struct exchange *exchange = own->exchange;
    read_head(own, stream);
    errno = 0;
    ssize_t got = lsquic_stream_readf(stream, take, own);
    if (got > 0 || (got < 0 && (errno == 0 || errno == EWOULDBLOCK))) {
        return;
    }
    if (got < 0) {
        exchange_end(exchange, errno == ECONNRESET ? RESET : PROTOCOL,
                     errno == ECONNRESET ? "the server reset the stream" : "the server broke HTTP/3");
        return;
    }
    struct record *r = &exchange->record;
    r->end = now();
    bool cut = !r->status || (own->announces && r->bytes_in < own->announced);
    exchange_end(exchange, cut ? TRUNCATED : NONE, cut ? "the response ended before its head or its announced length" : NULL);
}

void exchange_closed(lsquic_stream_t *stream, lsquic_stream_ctx_t *of) {
    struct own *own = (void *)of;
    (void)stream;
    if (!own) {
        return;
    }
    // The stream ended with its connection, which has the reason.
    own->stream = NULL;
    TAILQ_REMOVE(&own->connection->asked, own, next);
    TAILQ_INSERT_TAIL(&own->connection->waiting, own, next);
}
