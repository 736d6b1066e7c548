// A client's connections: opened when a request needs one, kept or closed, with the requests on them.
#ifndef LINE_H
#define LINE_H

#include "driver.h"
#include "quic.h"
#include "tickets.h"

struct link {
    bool kept;
    struct line *line;  // NULL: none is open
};

struct line {
    struct quic *quic;
    struct port port;
    struct link *link;  // NULL: no request will use it any more
    struct own *first;  // its requests
    struct exchange *opener;
    uint32_t number;
    enum handshake handshake;
    bool early, ticketed, ends;
    ngtcp2_conn_info before;  // its counts before the window
    bool was_before;
    struct alarm end;
    struct line *next, *previous;
};

// The driver's state of a request.
struct own {
    struct exchange *exchange;
    struct line *line;  // NULL: it is not under way
    struct own *next, *previous;
    int64_t stream;  // -1: it waits for the connection, or for the peer to allow another stream
    uint64_t given, announced;
    bool announces, asked;
    moment last;
};

static inline struct own *own_of(const struct exchange *exchange) {
    return exchange->own;
}

void line_prepare(const struct spec *spec);
// The line of a link for a request, open or new; NULL: no route to the server.
struct line *line_of(struct exchange *exchange);
// The request is on the line from now on, or no longer.
void line_join(struct line *line, struct own *own);
void line_leave(struct own *own);
// Sends the pending bytes.
void line_write(struct line *line);
// A link releases its line, which closes after its ticket has come, if one is wanted.
void line_drop(struct link *link);
// Whether an unused line is still open.
bool line_lingers(void);
// Closes unused lines; the measured window begins.
void line_warm(void);
// Closes all remaining lines.
void line_finish(void);
json_object *line_facts(void);
json_object *line_transport(void);
// A fact for `configured`: the server allows fewer streams than wanted.
void line_note_limit(void);

#endif
