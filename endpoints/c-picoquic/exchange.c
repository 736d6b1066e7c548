// Requests and their streams.
#include "client.h"
#include "pattern.h"
#include "request.h"

static const struct spec *spec;

void exchange_prepare(const struct spec *of) {
    spec = of;
}

void exchange_attach(struct exchange *exchange, struct connection *connection) {
    struct own *own = own_of(exchange);
    own->connection = connection;
    own->next = connection->exchanges;
    own->link = &connection->exchanges;
    if (own->next) {
        own_of(own->next)->link = &own->next;
    }
    connection->exchanges = exchange;
}

void exchange_detach(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    *own->link = own->next;
    if (own->next) {
        own_of(own->next)->link = own->link;
    }
    own->connection = NULL;
}

void exchange_end(struct exchange *exchange, enum kind failure, const char *why) {
    struct connection *connection = own_of(exchange)->connection;
    exchange_detach(exchange);
    if (!exchange->link->kept) {
        connection_let_go(connection);
    } else if (connection->opener == exchange) {
        connection->opener = NULL;
    }
    engine_ended(exchange, failure, why);
}

void exchange_ask(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    picoquic_cnx_t *cnx = own->connection->cnx;
    own->stream = picoquic_get_next_local_stream_id(cnx, 0);
    own->asked = true;
    own->sent = 0;
    http3_reset(&own->read);
    exchange->record.connection = own->connection->number;
    engine_ready(exchange);
    picoquic_add_to_stream_with_ctx(cnx, own->stream, request.bytes, request.length, !spec->body_size, exchange);
    if (spec->body_size) {
        picoquic_mark_active_stream(cnx, own->stream, 1, exchange);
    }
    quic_due();
}

static void receive_body(void *of, const uint8_t *bytes, size_t length) {
    struct exchange *exchange = of;
    exchange->record.bytes_in += length;
    if (exchange->digest) {
        EVP_DigestUpdate(exchange->digest, bytes, length);
    }
}

void exchange_receive(struct exchange *exchange, uint8_t *bytes, size_t length, bool fin) {
    struct own *own = own_of(exchange);
    struct record *r = &exchange->record;
    moment at = now();
    r->first_byte = r->first_byte || !length ? r->first_byte : at;
    bool right = http3_read(&own->read, bytes, length, receive_body, exchange);
    if (right && !fin) {
        return;
    }
    r->status = (uint16_t)own->read.header.status;
    r->end = at;
    if (!right || own->sent < spec->body_size) {
        picoquic_discard_stream(own->connection->cnx, own->stream, H3ZERO_REQUEST_CANCELLED);
    } else {
        picoquic_unlink_app_stream_ctx(own->connection->cnx, own->stream);
    }
    if (!right) {
        exchange_end(exchange, PROTOCOL, "the server broke HTTP/3");
    } else if (!r->status) {
        exchange_end(exchange, TRUNCATED, "the response ended before its header");
    } else {
        exchange_end(exchange, NONE, NULL);
    }
}

void exchange_provide(struct exchange *exchange, void *context, size_t room) {
    struct own *own = own_of(exchange);
    uint64_t left = spec->body_size - own->sent;
    size_t length = left < room ? left : room;
    uint8_t *to = picoquic_provide_stream_data_buffer(context, length, length == left, length < left);
    if (!to) {
        fail(OTHER, "picoquic takes no %zu bytes", length);
    }
    pattern_fill(own->sent, to, length);
    own->sent += length;
}
