// HTTP/3 by h3zero, picoquic's own: its QPACK, its parser of frames, its control streams. Streams of requests are the caller's.
#ifndef HTTP3_H
#define HTTP3_H

#include <h3zero_common.h>

#include "quic.h"

// The field sections here are as large as the contract's header fields may be.
enum { HTTP3_HEAD = 1 << 16 };

// A HEADERS frame and the beginning of the DATA frame behind it, in the making.
struct head {
    uint8_t bytes[HTTP3_HEAD];
    uint8_t *next;
    size_t length;
};

void head_begin(struct head *head);
// A field whose name is in the static table of QPACK (RFC 9204, appendix A), or name and value are.
void head_add(struct head *head, unsigned index, const char *value);
void head_add_known(struct head *head, unsigned index);
void head_add_named(struct head *head, const char *name, const char *value);
// Ends it, with a body of so many bytes to follow; false: it is too long.
bool head_end(struct head *head, uint64_t body);

enum {
    FIELD_AUTHORITY = 0, FIELD_PATH = 1, FIELD_LENGTH = 4, FIELD_LOCATION = 12, FIELD_METHOD = 15, FIELD_GET = 17, FIELD_POST = 20,
    FIELD_HTTPS = 23, FIELD_STATUS = 24, FIELD_200 = 25,
};

// The rest of a connection: control streams and settings.
h3zero_callback_ctx_t *http3_new(void);
// Bytes for streams in one direction.
int http3_control(picoquic_cnx_t *connection, h3zero_callback_ctx_t *http3, uint64_t stream, uint8_t *bytes, size_t length,
                  picoquic_call_back_event_t event, void *of);

// Reads a part of a stream of requests. `body` is called with the bytes of the body. False: the peer broke the protocol.
bool http3_read(h3zero_data_stream_state_t *state, uint8_t *bytes, size_t length, void (*body)(void *of, const uint8_t *, size_t),
                void *of);
// Begins a new stream; forgets the state of the one before.
void http3_reset(h3zero_data_stream_state_t *state);

#endif
