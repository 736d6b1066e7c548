// What an endpoint adds to the engine: one library. The engine knows no protocol and no library.
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

// What there is, for `describe`.
struct library {
    const char *endpoint, *name, *version;
    const char *const *protocols, *const *features;
    bool sets_quic;  // its QUIC has all settings of `struct quic_settings`, and 0-RTT
    // What it can do as a server; NULL: it is a client only.
    const char *const *served, *const *offered;
    void (*serve)(const char *spec_path);
    // Where its connections can be asked of their transport (`transport` of `done`), else NULL: begins to count, before the
    // window; says what was counted, a new reference.
    void (*warm)(void);
    json_object *(*transport)(void);
};
const struct library *driver_library(void);

// Loads what is needed and refuses what cannot be honoured; nothing is connected.
void driver_prepare(const struct spec *spec);
// What is in force, as far as it is known yet; a new reference.
json_object *driver_configured(void);

// A connection to be: it opens with the first request that needs it. `kept`: for many requests, else for one each.
struct link *link_new(bool kept);
// Closes it, if it is kept.
void link_free(struct link *link);
// Closes what is left, at the end.
void driver_finish(void);
// A lane of that link is made; what all of its requests share is prepared.
void driver_lane(struct exchange *exchange);
void driver_lane_free(struct exchange *exchange);
// Sends the request of the spec. What happens is told below, perhaps before this returns.
void driver_send(struct exchange *exchange);
// Gives up a request that was sent; nothing is told of it any more.
void driver_cancel(struct exchange *exchange);

// The number of a connection that is about to be opened, and the address in turn that it goes to.
uint32_t engine_number(void);
const struct address *engine_address(void);
// The connection can send: from now on the time-out of the request holds. The driver has noted the times.
void engine_ready(struct exchange *exchange);
// The request ended, the record's end is noted; NONE: with a response that is yet to be judged.
void engine_ended(struct exchange *exchange, enum kind failure, const char *message);

#endif
