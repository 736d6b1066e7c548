#include "request.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pattern.h"

static const struct spec *spec;
static nghttp3_nv *fields;
static size_t field_count;

static void add_field(const char *name, const char *value) {
    fields[field_count++] = (nghttp3_nv){
        .name = (const uint8_t *)name, .value = (const uint8_t *)value, .namelen = strlen(name), .valuelen = strlen(value),
        .flags = NGHTTP3_NV_FLAG_NO_COPY_NAME | NGHTTP3_NV_FLAG_NO_COPY_VALUE,
    };
}

static const char *lower(const char *name) {
    char *made = strdup(name);
    for (char *c = made; *c; c++) {
        *c = (char)tolower((unsigned char)*c);
    }
    return made;
}

void request_prepare(const struct spec *of) {
    enum { OWN_FIELDS = 5 };
    static char host[600], size[24];
    spec = of;
    pattern_prepare();
    size_t further = spec->headers ? json_object_array_length(spec->headers) : 0;
    fields = allocate(OWN_FIELDS + further, sizeof *fields);
    snprintf(host, sizeof host, strchr(spec->server_name, ':') ? "[%s]:%d" : "%s:%d", spec->server_name, spec->port);
    snprintf(size, sizeof size, "%llu", (unsigned long long)spec->body_size);
    add_field(":method", spec->method);
    add_field(":scheme", "https");
    add_field(":authority", host);
    add_field(":path", spec->path);
    if (spec->body_size || strcmp(spec->method, "POST") == 0) {
        add_field("content-length", size);
    }
    for (size_t i = 0; i < further; i++) {
        json_object *pair = json_object_array_get_idx(spec->headers, i);
        add_field(lower(json_object_get_string(json_object_array_get_idx(pair, 0))),
                  json_object_get_string(json_object_array_get_idx(pair, 1)));
    }
}

static nghttp3_ssize give(nghttp3_conn *http, int64_t stream, nghttp3_vec *parts, size_t room, uint32_t *flags, void *of, void *user) {
    (void)http, (void)stream, (void)of;
    struct exchange *exchange = user;
    if (!exchange) {
        return NGHTTP3_ERR_WOULDBLOCK;  // it was given up
    }
    struct own *own = own_of(exchange);
    size_t count = 0;
    for (; count < room && own->given < spec->body_size; count++) {
        size_t length;
        const uint8_t *bytes = pattern_at(own->given, spec->body_size - own->given, &length);
        parts[count] = (nghttp3_vec){(uint8_t *)bytes, length};
        own->given += length;
    }
    if (own->given == spec->body_size) {
        *flags |= NGHTTP3_DATA_FLAG_EOF;
    }
    return (nghttp3_ssize)count;
}

// Whether the request is under way; otherwise the server allows no further stream yet.
static bool hand_over(struct own *own) {
    struct quic *quic = own->line->quic;
    int64_t stream;
    if (ngtcp2_conn_open_bidi_stream(quic->conn, &stream, NULL) != 0) {
        line_note_limit();
        return false;
    }
    own->stream = stream;
    own->given = 0;
    if (!own->asked) {
        own->asked = true;
        engine_ready(own->exchange);
    }
    const nghttp3_data_reader body = {give};
    if (nghttp3_conn_submit_request(quic->http, stream, fields, field_count, spec->body_size ? &body : NULL, own->exchange) != 0) {
        fail(OTHER, "nghttp3 takes no request");
    }
    return true;
}

void request_send_waiting(struct line *line) {
    // The oldest requests are at the end.
    struct own *last = line->first;
    while (last && last->next) {
        last = last->next;
    }
    for (struct own *own = last; own && line->quic->http; own = own->previous) {
        if (own->stream < 0 && !hand_over(own)) {
            return;
        }
    }
}

void driver_lane(struct exchange *exchange) {
    struct own *own = exchange->own = allocate(1, sizeof *own);
    own->exchange = exchange;
    own->stream = -1;
}

void driver_lane_free(struct exchange *exchange) {
    if (own_of(exchange)->line) {
        driver_cancel(exchange);
    }
    free(exchange->own);
}

void driver_send(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    *own = (struct own){.exchange = exchange, .stream = -1};
    struct line *line = line_of(exchange);
    if (!line) {
        exchange->record.bytes_out = 0;
        engine_ended(exchange, UNREACHABLE, "no way leads to the server");
        return;
    }
    line_join(line, own);
    if (line->quic->http && (line->quic->established || line->early)) {
        hand_over(own);
    }
    line_write(line);
}

// The request is over, one way or the other.
static void leave(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    struct link *link = exchange->link;
    if (!own->asked) {
        exchange->record.bytes_out = 0;
    }
    line_leave(own);
    if (!link->kept) {
        line_drop(link);
    }
}

static void forget(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    nghttp3_conn *http = own->line->quic->http;
    if (http && own->stream >= 0) {
        nghttp3_conn_set_stream_user_data(http, own->stream, NULL);
    }
}

void driver_cancel(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    struct line *line = own->line;
    if (!line) {
        return;
    }
    forget(exchange);
    // Gives up a connection that is late and has no other waiting request.
    if (!line->quic->established && line->first == own && !own->next) {
        leave(exchange);
        line_drop(exchange->link);
        return;
    }
    if (own->stream >= 0) {
        ngtcp2_conn_shutdown_stream(line->quic->conn, 0, own->stream, NGHTTP3_H3_REQUEST_CANCELLED);
        nghttp3_conn_shutdown_stream_read(line->quic->http, own->stream);
    }
    bool kept = exchange->link->kept;
    leave(exchange);
    if (kept) {
        line_write(line);
    }
}

// From nghttp3; `user` is the exchange, or NULL if it was given up.

static int begin(nghttp3_conn *http, int64_t stream, void *of, void *user) {
    (void)http, (void)stream, (void)of;
    struct exchange *exchange = user;
    if (exchange && !exchange->record.first_byte) {
        exchange->record.first_byte = now();
    }
    return 0;
}

static uint64_t number(nghttp3_rcbuf *value) {
    nghttp3_vec text = nghttp3_rcbuf_get_buf(value);
    uint64_t n = 0;
    for (size_t i = 0; i < text.len && isdigit(text.base[i]); i++) {
        n = 10 * n + (uint64_t)(text.base[i] - '0');
    }
    return n;
}

static int header(nghttp3_conn *http, int64_t stream, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value, uint8_t flags,
                  void *of, void *user) {
    (void)http, (void)stream, (void)name, (void)flags, (void)of;
    struct exchange *exchange = user;
    if (exchange && token == NGHTTP3_QPACK_TOKEN__STATUS) {
        exchange->record.status = (uint16_t)number(value);
    } else if (exchange && token == NGHTTP3_QPACK_TOKEN_CONTENT_LENGTH) {
        own_of(exchange)->announces = true;
        own_of(exchange)->announced = number(value);
    }
    return 0;
}

static int headers_over(nghttp3_conn *http, int64_t stream, int last, void *of, void *user) {
    (void)http, (void)stream, (void)last, (void)of;
    struct exchange *exchange = user;
    if (exchange) {
        own_of(exchange)->last = now();
    }
    return 0;
}

static int body(nghttp3_conn *http, int64_t stream, const uint8_t *bytes, size_t length, void *of, void *user) {
    (void)http;
    quic_consumed(of, stream, length);
    struct exchange *exchange = user;
    if (exchange) {
        own_of(exchange)->last = now();
        exchange->record.bytes_in += length;
        if (exchange->digest) {
            EVP_DigestUpdate(exchange->digest, bytes, length);
        }
    }
    return 0;
}

static int response_over(nghttp3_conn *http, int64_t stream, void *of, void *user) {
    (void)of;
    struct exchange *exchange = user;
    if (exchange) {
        nghttp3_conn_set_stream_user_data(http, stream, NULL);
        exchange->record.end = own_of(exchange)->last;
        leave(exchange);
        engine_ended(exchange, NONE, NULL);
    }
    return 0;
}

// The stream is over; its response is not, if the request is still there.
static int stream_over(nghttp3_conn *http, int64_t stream, uint64_t code, void *of, void *user) {
    (void)http, (void)stream, (void)of;
    struct exchange *exchange = user;
    if (!exchange) {
        return 0;
    }
    const struct own *own = own_of(exchange);
    bool malformed = code == NGHTTP3_H3_MESSAGE_ERROR;
    bool short_of = own->announces && exchange->record.bytes_in < own->announced;
    enum kind kind = (malformed && short_of) || code == NGHTTP3_H3_NO_ERROR ? TRUNCATED : malformed ? PROTOCOL : RESET;
    leave(exchange);
    engine_ended(exchange, kind, kind == TRUNCATED ? "the stream ended within the response"
                                 : kind == PROTOCOL ? "the response breaks the rules of HTTP"
                                                    : "the server reset the stream");
    return 0;
}

const nghttp3_callbacks REQUEST = {
    .begin_headers = begin, .recv_header = header, .end_headers = headers_over, .recv_data = body, .end_stream = response_over,
    .stream_close = stream_over,
};
