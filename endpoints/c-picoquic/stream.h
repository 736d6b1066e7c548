// A stream of the server: a request and its answer.
#ifndef STREAM_H
#define STREAM_H

#include "alarm.h"
#include "http3.h"
#include "site.h"

struct stream {
    picoquic_cnx_t *cnx;
    uint64_t id;
    h3zero_data_stream_state_t read;
    uint8_t *received;  // the body of the request
    uint64_t length, room, sent;
    struct reply reply;
    uint64_t size;  // of its body
    struct alarm delay;
    struct stream *next, **link;  // among the connection's
};

// A part of a request; with a NULL stream it begins a new one, added to `streams`. Answers a complete request.
void stream_receive(struct stream *stream, struct stream **streams, picoquic_cnx_t *cnx, uint64_t id, uint8_t *bytes, size_t length,
                    bool fin);
// Puts as much of the response's body into a packet as fits.
void stream_provide(struct stream *stream, void *context, size_t room);
// Gives it up, and tells the client so.
void stream_give_up(struct stream *stream, uint64_t code);
void stream_free(struct stream *stream);
// The number of answered requests.
uint64_t stream_answered(void);

#endif
