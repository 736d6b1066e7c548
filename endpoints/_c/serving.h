// A server's conversation with wirelab, for the thread that the words come to.
#ifndef SERVING_H
#define SERVING_H

#include <json-c/json.h>
#include <stdint.h>

// Says `ready`, and goes on with the loop of this thread, which is open, until the server is to stop. `answered`: how many requests there
// were so far.
void serving_run(uint16_t port, json_object *configured, uint64_t (*answered)(void));
// Says `done`. `transport` may be NULL.
void serving_done(uint64_t answered, json_object *configured, json_object *transport);

#endif
