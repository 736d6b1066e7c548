// The part that an endpoint adds to the engine: one library. The engine knows no protocol and no library.
#ifndef DRIVER_H
#define DRIVER_H

#include <openssl/evp.h>

#include "alarm.h"
#include "record.h"

// One request under way, again and again over the same lane.
struct exchange {
    struct record record;
    struct link *link;
    struct alarm deadline;
    uint64_t user;
    EVP_MD_CTX *digest;  // of the body; NULL but in the check request
    void *own;           // the driver's
};

// The abilities, for `describe`.
struct library {
    const char *endpoint, *name, *version;
    const char *const *protocols, *const *features;
    bool sets_quic;  // its QUIC has all settings of `struct quic_settings`, and 0-RTT
    // Its abilities as a server; NULL: it is a client only.
    const char *const *served, *const *offered;
    void (*serve)(const char *spec_path);
    // Both are NULL if its connections do not report on their transport (`transport` of `done`). Begins to count, before the
    // window; returns the counts, a new reference.
    void (*warm)(void);
    json_object *(*transport)(void);
};
const struct library *driver_library(void);

// Loads the library and refuses a spec that it cannot honour; connects nothing.
void driver_prepare(const struct spec *spec);
// The active settings known so far; a new reference.
json_object *driver_configured(void);

// A planned connection: the first request that needs it opens it. `kept`: for many requests, else for one each.
struct link *link_new(bool kept);
// Closes a kept connection.
void link_free(struct link *link);
// Closes all remaining connections, at the end.
void driver_finish(void);
// Makes a lane of that link, and prepares the part that all of its requests share.
void driver_lane(struct exchange *exchange);
void driver_lane_free(struct exchange *exchange);
// Sends the request of the spec. The calls below report its progress, perhaps before this returns.
void driver_send(struct exchange *exchange);
// Gives up a request that was sent; no call about it follows.
void driver_cancel(struct exchange *exchange);

// The number of a connection that is about to be opened, and its address, in turn.
uint32_t engine_number(void);
const struct address *engine_address(void);
// The connection can send: from now on the time-out of the request holds. The driver has noted the times.
void engine_ready(struct exchange *exchange);
// The request ended, and the record has its end; NONE: the response is not checked yet.
void engine_ended(struct exchange *exchange, enum kind failure, const char *message);

#endif
