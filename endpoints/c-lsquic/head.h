// Fields of HTTP/3: those of a message that came, and those of one to be sent.
#ifndef HEAD_H
#define HEAD_H

#include <lsquic.h>
#include <lsxpack_header.h>
#include <stdbool.h>
#include <stdint.h>

// The kept parts of a received message.
struct head {
    struct lsxpack_header field;  // that is being decoded
    char *room;
    size_t size;
    int status;             // 0: it is a request, or trailers
    char method[16];        // truncated, and then unknown, if longer
    char path[1024];
    bool announces;
    uint64_t announced;     // the length of the body
};

// lsquic makes them; the caller that takes one from its stream frees it.
extern const struct lsquic_hset_if HEADS;
void head_free(struct head *head);

enum { MOST_FIELDS = 64, MOST_BYTES = 1 << 15 };

// Fields to be sent, in the making.
struct fields_out {
    struct lsxpack_header fields[MOST_FIELDS];
    char bytes[MOST_BYTES];
    int count;
    size_t length;
};

// Adds a field; false: no room.
bool fields_out_add(struct fields_out *list, const char *name, const char *value);
// Sends them at the beginning of a stream; false: lsquic does not take them.
bool fields_out_send(struct fields_out *list, lsquic_stream_t *stream);

#endif
