// A server's conversation with wirelab, in the thread that reads the words.
#ifndef SERVING_H
#define SERVING_H

#include <json-c/json.h>
#include <stdint.h>

// Prints `ready`, and runs this thread's open loop until the word `stop`. `answered` returns the number of requests
// so far.
void serving_run(uint16_t port, json_object *configured, uint64_t (*answered)(void));
// Prints `done`. `transport` may be NULL.
void serving_done(uint64_t answered, json_object *configured, json_object *transport);

#endif
