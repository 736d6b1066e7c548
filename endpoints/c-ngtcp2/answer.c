#include "answer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"
#include "pattern.h"
#include "site.h"

enum { LONGEST_PATH = 1024, LONGEST_METHOD = 16, CHUNK = 16384 };

// A part of the body of an echo, kept until the client has acknowledged it.
struct chunk {
    struct chunk *next;
    size_t length, given;
    uint8_t bytes[CHUNK];
};

// A request.
struct request {
    struct quic *quic;
    struct request *next, *previous;  // of the connection
    int64_t stream;
    char method[LONGEST_METHOD], path[LONGEST_PATH];
    bool too_long, ended;  // its body is over
    char announced[24];    // the size of its body, as the client says
    moment arrived;
    struct reply reply;
    uint64_t given;  // of the answer's body
    struct chunk *first, *last, *unsent;
    uint64_t acknowledged;  // of the first chunk
    struct alarm delay;
};

static nghttp3_vec piece_of(const uint8_t *bytes, uint64_t length) {
    return (nghttp3_vec){(uint8_t *)bytes, (size_t)length};
}

static nghttp3_ssize give_echo(struct request *r, nghttp3_vec *parts, size_t room, uint32_t *flags) {
    size_t count = 0;
    while (r->unsent && count < room) {
        struct chunk *chunk = r->unsent;
        if (chunk->given < chunk->length) {
            parts[count++] = piece_of(chunk->bytes + chunk->given, chunk->length - chunk->given);
            chunk->given = chunk->length;
        }
        if (!chunk->next) {
            break;  // it may still grow; later bytes follow later
        }
        r->unsent = chunk->next;
    }
    bool all = !r->unsent || (!r->unsent->next && r->unsent->given == r->unsent->length);
    if (r->ended && all) {
        *flags |= NGHTTP3_DATA_FLAG_EOF;
    } else if (!count) {
        return NGHTTP3_ERR_WOULDBLOCK;
    }
    return (nghttp3_ssize)count;
}

// The bytes of the answer stay where they are until the client has acknowledged them: documents and the pattern always do.
static nghttp3_ssize give(nghttp3_conn *http, int64_t stream, nghttp3_vec *parts, size_t room, uint32_t *flags, void *of, void *user) {
    (void)http, (void)stream, (void)of;
    struct request *r = user;
    if (r->reply.kind == ECHO) {
        return give_echo(r, parts, room, flags);
    }
    if (r->reply.kind != PATTERN) {
        bool text = r->reply.kind == TEXT;
        parts[0] = text ? piece_of((uint8_t *)r->reply.text, r->reply.size)
                        : piece_of(r->reply.document->bytes, r->reply.document->size);
        *flags |= NGHTTP3_DATA_FLAG_EOF;
        return 1;
    }
    size_t count = 0;
    for (; count < room && r->given < r->reply.size; count++) {
        size_t length;
        const uint8_t *bytes = pattern_at(r->given, r->reply.size - r->given, &length);
        parts[count] = piece_of(bytes, length);
        r->given += length;
    }
    if (r->given == r->reply.size) {
        *flags |= NGHTTP3_DATA_FLAG_EOF;
    }
    return (nghttp3_ssize)count;
}

static nghttp3_nv field(const char *name, const char *value) {
    return (nghttp3_nv){
        .name = (const uint8_t *)name, .value = (const uint8_t *)value, .namelen = strlen(name), .valuelen = strlen(value),
        .flags = NGHTTP3_NV_FLAG_NO_COPY_NAME,
    };
}

// Begins the answer; 0, or nghttp3's word for a callback that failed.
static int respond(struct request *r) {
    const struct reply *reply = &r->reply;
    char status[12], size[24];
    snprintf(status, sizeof status, "%d", reply->status);
    uint64_t length = reply->kind == DOCUMENT ? reply->document->size : reply->size;
    snprintf(size, sizeof size, "%llu", (unsigned long long)length);
    nghttp3_nv fields[3] = {field(":status", status)};
    size_t count = 1;
    // An echo's size is known if its request's is.
    if (reply->kind != ECHO || *r->announced) {
        fields[count++] = field("content-length", reply->kind == ECHO ? r->announced : size);
    }
    if (reply->redirects) {
        fields[count++] = field("location", r->path);
    }
    bool body = reply->kind == ECHO || length > 0;
    int why = nghttp3_conn_submit_response(r->quic->http, r->stream, fields, count, body ? &(nghttp3_data_reader){give} : NULL);
    struct desk *desk = r->quic->owner;
    atomic_fetch_add_explicit(&desk->answered, 1, memory_order_relaxed);
    return why ? NGHTTP3_ERR_CALLBACK_FAILURE : 0;
}

static void after_delay(void *of) {
    struct request *r = of;
    struct quic *quic = r->quic;
    if (respond(r) == 0) {
        quic_write(quic);
    }
}

static int begin(nghttp3_conn *http, int64_t stream, void *of, void *user) {
    (void)user;
    struct request *r = allocate(1, sizeof *r);
    r->quic = of;
    r->stream = stream;
    r->delay = (struct alarm){.act = after_delay, .of = r};
    r->next = r->quic->requests;
    if (r->next) {
        r->next->previous = r;
    }
    r->quic->requests = r;
    return nghttp3_conn_set_stream_user_data(http, stream, r) ? NGHTTP3_ERR_CALLBACK_FAILURE : 0;
}

// Whether it fits, with a zero behind it.
static bool copy(char *to, size_t room, nghttp3_rcbuf *from) {
    nghttp3_vec text = nghttp3_rcbuf_get_buf(from);
    bool fits = text.len < room;
    size_t length = fits ? text.len : 0;
    memcpy(to, text.base, length);
    to[length] = 0;
    return fits;
}

static int header(nghttp3_conn *http, int64_t stream, int32_t token, nghttp3_rcbuf *name, nghttp3_rcbuf *value, uint8_t flags,
                  void *of, void *user) {
    (void)http, (void)stream, (void)name, (void)flags, (void)of;
    struct request *r = user;
    switch (token) {
    case NGHTTP3_QPACK_TOKEN__METHOD:
        r->too_long |= !copy(r->method, sizeof r->method, value);
        break;
    case NGHTTP3_QPACK_TOKEN__PATH:
        r->too_long |= !copy(r->path, sizeof r->path, value);
        break;
    case NGHTTP3_QPACK_TOKEN_CONTENT_LENGTH:
        copy(r->announced, sizeof r->announced, value);
        break;
    }
    return 0;
}

static int headers_over(nghttp3_conn *http, int64_t stream, int last, void *of, void *user) {
    (void)http, (void)stream, (void)of;
    struct request *r = user;
    r->arrived = now();
    r->ended = last;
    r->path[strcspn(r->path, "?")] = 0;
    site_reply(&r->reply, r->method, r->path);
    if (r->too_long) {
        r->reply = (struct reply){.kind = EMPTY, .status = 414};
    }
    if (r->reply.kind == LATER) {
        alarm_set(&r->delay, r->arrived + (moment)(r->reply.delay * 1000));
        return 0;
    }
    return respond(r);
}

static void keep(struct request *r, const uint8_t *bytes, size_t length) {
    while (length) {
        if (!r->last || r->last->length == CHUNK) {
            struct chunk *chunk = malloc(sizeof *chunk);
            if (!chunk) {
                fail(OTHER, "no memory for the body of an echo");
            }
            chunk->next = NULL;
            chunk->length = chunk->given = 0;
            *(r->last ? &r->last->next : &r->first) = chunk;
            r->unsent = r->unsent ? r->unsent : chunk;
            r->last = chunk;
        }
        size_t fits = CHUNK - r->last->length < length ? CHUNK - r->last->length : length;
        memcpy(r->last->bytes + r->last->length, bytes, fits);
        r->last->length += fits;
        bytes += fits;
        length -= fits;
    }
}

static int body(nghttp3_conn *http, int64_t stream, const uint8_t *bytes, size_t length, void *of, void *user) {
    struct request *r = user;
    quic_consumed(of, stream, length);
    if (r->reply.kind != ECHO) {
        return 0;
    }
    keep(r, bytes, length);
    return nghttp3_conn_resume_stream(http, stream) ? NGHTTP3_ERR_CALLBACK_FAILURE : 0;
}

static int request_over(nghttp3_conn *http, int64_t stream, void *of, void *user) {
    (void)of;
    struct request *r = user;
    r->ended = true;
    return r->reply.kind == ECHO && nghttp3_conn_resume_stream(http, stream) ? NGHTTP3_ERR_CALLBACK_FAILURE : 0;
}

static int acknowledged(nghttp3_conn *http, int64_t stream, uint64_t length, void *of, void *user) {
    (void)http, (void)stream, (void)of;
    struct request *r = user;
    r->acknowledged += length;
    // One that may grow yet stays.
    while (r->first && r->first->next && r->acknowledged >= r->first->length && r->first != r->unsent) {
        struct chunk *gone = r->first;
        r->acknowledged -= gone->length;
        r->first = gone->next;
        free(gone);
    }
    return 0;
}

static void request_free(struct request *r) {
    alarm_cancel(&r->delay);
    *(r->previous ? &r->previous->next : &r->quic->requests) = r->next;
    if (r->next) {
        r->next->previous = r->previous;
    }
    while (r->first) {
        struct chunk *gone = r->first;
        r->first = gone->next;
        free(gone);
    }
    free(r);
}

static int stream_over(nghttp3_conn *http, int64_t stream, uint64_t code, void *of, void *user) {
    (void)http, (void)stream, (void)code, (void)of;
    if (user) {
        request_free(user);
    }
    return 0;
}

void answer_drop(struct quic *quic) {
    while (quic->requests) {
        request_free(quic->requests);
    }
}

const nghttp3_callbacks ANSWER = {
    .begin_headers = begin, .recv_header = header, .end_headers = headers_over, .recv_data = body, .end_stream = request_over,
    .acked_stream_data = acknowledged, .stream_close = stream_over,
};
