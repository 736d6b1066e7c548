// What a server answers to a path: the features of the contract in HTTP.
#ifndef SITE_H
#define SITE_H

#include <stdint.h>
#include <sys/types.h>

#include "clock.h"

enum body { PATTERN, DOCUMENT, TEXT, ECHO };

struct answer {
    int status;
    enum body body;
    uint64_t size;         // of all but ECHO, whose size is that of the request's body
    moment delay;          // how long after the request it goes out
    int document;          // a descriptor, or -1
    char text[200];        // digits of a root, at most some 170
    const char *location;  // NULL: none
};

// Documents are below `root`, which is NULL where there are none.
void site_prepare(const char *root);
struct answer site_answer(const char *method, const char *path);
// Puts the bytes from `offset` on of an answer's body in place; an echo's come from what was received.
void site_fill(const struct answer *answer, const uint8_t *echoed, uint64_t offset, uint8_t *to, size_t length);
// Lets go of the document.
void site_forget(struct answer *answer);
// The pattern of every generated body.
void pattern_fill(uint64_t offset, uint8_t *to, size_t length);

#endif
