#include "stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"
#include "pattern.h"

static uint64_t answered;

uint64_t stream_answered(void) {
    return answered;
}

void stream_free(struct stream *stream) {
    alarm_cancel(&stream->delay);
    http3_reset(&stream->read);
    free(stream->received);
    *stream->link = stream->next;
    if (stream->next) {
        stream->next->link = stream->link;
    }
    free(stream);
}

static struct stream *stream_new(struct stream **streams, picoquic_cnx_t *cnx, uint64_t id) {
    struct stream *made = allocate(1, sizeof *made);
    *made = (struct stream){.cnx = cnx, .id = id, .next = *streams, .link = streams};
    http3_reset(&made->read);
    if (made->next) {
        made->next->link = &made->next;
    }
    *streams = made;
    picoquic_set_app_stream_ctx(cnx, id, made);
    return made;
}

void stream_give_up(struct stream *stream, uint64_t code) {
    picoquic_discard_stream(stream->cnx, stream->id, (uint16_t)code);
    stream_free(stream);
}

static void receive_body(void *of, const uint8_t *bytes, size_t length) {
    struct stream *stream = of;
    if (stream->length + length > stream->room) {
        stream->room = 2 * stream->room > stream->length + length ? 2 * stream->room : stream->length + length;
        stream->received = realloc(stream->received, stream->room);
        if (!stream->received) {
            fail(OTHER, "no memory for a body of %llu bytes", (unsigned long long)stream->room);
        }
    }
    memcpy(stream->received + stream->length, bytes, length);
    stream->length += length;
}

static void finished(struct stream *stream) {
    answered++;
    picoquic_unlink_app_stream_ctx(stream->cnx, stream->id);
    stream_free(stream);
}

static void send_head(struct stream *stream) {
    static struct head head;
    char number[24];
    head_begin(&head);
    if (stream->reply.status == 200) {
        head_add_known(&head, FIELD_200);
    } else {
        snprintf(number, sizeof number, "%d", stream->reply.status);
        head_add(&head, FIELD_STATUS, number);
    }
    snprintf(number, sizeof number, "%llu", (unsigned long long)stream->size);
    head_add(&head, FIELD_LENGTH, number);
    if (stream->reply.redirects) {
        head_add(&head, FIELD_LOCATION, "/redirect");
    }
    head_end(&head, stream->size);
    picoquic_add_to_stream_with_ctx(stream->cnx, stream->id, head.bytes, head.length, !stream->size, stream);
    if (stream->size) {
        picoquic_mark_active_stream(stream->cnx, stream->id, 1, stream);
    } else {
        finished(stream);
    }
    quic_due();
}

static void delayed(void *of) {
    send_head(of);
}

// The method as the site knows it; what h3zero knows no code for is some other one.
static const char *method(h3zero_method_enum code) {
    return code == h3zero_method_get ? "GET" : code == h3zero_method_post ? "POST" : "another";
}

static void answer(struct stream *stream) {
    const h3zero_header_parts_t *parts = &stream->read.header;
    char path[1024];
    int length = (int)(parts->path_length < sizeof path ? parts->path_length : sizeof path - 1);
    snprintf(path, sizeof path, "%.*s", length, parts->path ? (const char *)parts->path : "");
    path[strcspn(path, "?")] = 0;
    struct reply *reply = &stream->reply;
    site_reply(reply, method(parts->method), path);
    stream->size = reply->kind == ECHO ? stream->length : reply->kind == DOCUMENT ? reply->document->size : reply->size;
    if (reply->kind == LATER) {
        stream->delay = (struct alarm){.act = delayed, .of = stream};
        alarm_set(&stream->delay, now() + (moment)(reply->delay * 1000));
    } else {
        send_head(stream);
    }
}

// Puts the bytes from `offset` on of the answer's body in place.
static void fill(const struct stream *stream, uint64_t offset, uint8_t *to, size_t length) {
    switch (stream->reply.kind) {
    case PATTERN:
        pattern_fill(offset, to, length);
        break;
    case TEXT:
        memcpy(to, stream->reply.text + offset, length);
        break;
    case ECHO:
        memcpy(to, stream->received + offset, length);
        break;
    case DOCUMENT:
        memcpy(to, stream->reply.document->bytes + offset, length);
        break;
    default:
        break;
    }
}

void stream_provide(struct stream *stream, void *context, size_t room) {
    uint64_t left = stream->size - stream->sent;
    size_t length = left < room ? left : room;
    uint8_t *to = picoquic_provide_stream_data_buffer(context, length, length == left, length < left);
    if (!to) {
        fail(OTHER, "picoquic takes no %zu bytes", length);
    }
    fill(stream, stream->sent, to, length);
    stream->sent += length;
    if (length == left) {
        finished(stream);
    }
}

void stream_receive(struct stream *stream, struct stream **streams, picoquic_cnx_t *cnx, uint64_t id, uint8_t *bytes, size_t length,
                    bool fin) {
    stream = stream ? stream : stream_new(streams, cnx, id);
    if (!http3_read(&stream->read, bytes, length, receive_body, stream)) {
        stream_give_up(stream, H3ZERO_GENERAL_PROTOCOL_ERROR);
    } else if (fin && !stream->read.header_found) {
        stream_give_up(stream, H3ZERO_REQUEST_INCOMPLETE);
    } else if (fin) {
        answer(stream);
    }
}
