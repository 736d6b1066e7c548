#include "stream.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alarm.h"
#include "contract.h"
#include "head.h"
#include "pattern.h"
#include "quic.h"
#include "site.h"

struct stream {
    lsquic_stream_t *is;
    struct head *head;
    uint8_t *received;  // the body of the request
    uint64_t length, room, sent;
    struct reply reply;
    uint64_t size;  // of its body
    bool headed;
    struct alarm delay;
};

static uint64_t answered;

uint64_t stream_answered(void) {
    return answered;
}

lsquic_stream_ctx_t *stream_opened(void *of, lsquic_stream_t *is) {
    (void)of;
    if (!is) {
        return NULL;
    }
    struct stream *made = allocate(1, sizeof *made);
    made->is = is;
    lsquic_stream_wantread(is, 1);
    return (void *)made;
}

void stream_closed(lsquic_stream_t *is, lsquic_stream_ctx_t *of) {
    struct stream *stream = (void *)of;
    (void)is;
    if (!stream) {
        return;
    }
    alarm_cancel(&stream->delay);
    if (stream->head) {
        head_free(stream->head);
    }
    free(stream->received);
    free(stream);
}

static size_t take(void *of, const unsigned char *bytes, size_t length, int last) {
    struct stream *stream = of;
    (void)last;
    if (stream->length + length > stream->room) {
        stream->room = 2 * stream->room > stream->length + length ? 2 * stream->room : stream->length + length;
        stream->received = realloc(stream->received, stream->room);
        if (!stream->received) {
            fail(OTHER, "no memory for a body of %llu bytes", (unsigned long long)stream->room);
        }
    }
    if (length) {
        memcpy(stream->received + stream->length, bytes, length);
        stream->length += length;
    }
    return length;
}

static void send_head(struct stream *stream) {
    static struct fields_out list;
    char number[24];
    list.count = 0;
    list.length = 0;
    snprintf(number, sizeof number, "%d", stream->reply.status);
    fields_out_add(&list, ":status", number);
    snprintf(number, sizeof number, "%llu", (unsigned long long)stream->size);
    fields_out_add(&list, "content-length", number);
    if (stream->reply.redirects) {
        fields_out_add(&list, "location", "/redirect");
    }
    stream->headed = fields_out_send(&list, stream->is);
}

// The next contiguous piece of the response's body, after the sent part.
static const uint8_t *piece(const struct stream *stream, size_t *length) {
    uint64_t left = stream->size - stream->sent;
    *length = left < SIZE_MAX ? (size_t)left : SIZE_MAX;
    switch (stream->reply.kind) {
    case PATTERN:
        return pattern_at(stream->sent, left, length);
    case TEXT:
        return (const uint8_t *)stream->reply.text + stream->sent;
    case ECHO:
        return stream->received + stream->sent;
    default:
        return stream->reply.document->bytes + stream->sent;
    }
}

void stream_write(lsquic_stream_t *is, lsquic_stream_ctx_t *of) {
    struct stream *stream = (void *)of;
    if (!stream->headed) {
        send_head(stream);
    }
    while (stream->headed && stream->sent < stream->size) {
        size_t length;
        const uint8_t *bytes = piece(stream, &length);
        ssize_t taken = lsquic_stream_write(is, bytes, length);
        if (taken == 0) {
            return;
        }
        if (taken < 0) {
            lsquic_stream_close(is);  // the client gave it up
            return;
        }
        stream->sent += (uint64_t)taken;
    }
    answered += stream->headed;
    lsquic_stream_close(is);
}

static void delayed(void *of) {
    struct stream *stream = of;
    lsquic_stream_wantwrite(stream->is, 1);
    quic_due();
}

static void answer(struct stream *stream) {
    struct head *head = stream->head;
    struct reply *reply = &stream->reply;
    head->path[strcspn(head->path, "?")] = 0;
    site_reply(reply, head->method, head->path);
    stream->size = reply->kind == ECHO ? stream->length : reply->kind == DOCUMENT ? reply->document->size : reply->size;
    lsquic_stream_shutdown(stream->is, 0);
    if (reply->kind == LATER) {
        stream->delay = (struct alarm){.act = delayed, .of = stream};
        alarm_set(&stream->delay, now() + (moment)(reply->delay * 1000));
    } else {
        lsquic_stream_wantwrite(stream->is, 1);
    }
}

// Takes the head, once; trailers are ignored.
static void read_head(struct stream *stream) {
    struct head *head = lsquic_stream_get_hset(stream->is);
    if (stream->head && head) {
        head_free(head);
    } else if (head) {
        stream->head = head;
    }
}

void stream_read(lsquic_stream_t *is, lsquic_stream_ctx_t *of) {
    struct stream *stream = (void *)of;
    read_head(stream);
    errno = 0;
    ssize_t got = lsquic_stream_readf(is, take, stream);
    if (got > 0 || (got < 0 && (errno == 0 || errno == EWOULDBLOCK))) {
        return;
    }
    if (got < 0 || !stream->head) {
        lsquic_stream_close(is);
    } else {
        answer(stream);
    }
}
