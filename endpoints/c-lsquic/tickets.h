// What sessions can be resumed with.
#ifndef TICKETS_H
#define TICKETS_H

#include <stdbool.h>
#include <stddef.h>

struct ticket {
    unsigned char *bytes;
    size_t length;
    bool early;  // it allows for early data
};

// Keeps it; `bytes` are of malloc.
void tickets_keep(struct ticket ticket);
// The one that came last, each once, but the last of all for as long as no other comes; without bytes: there is none. They are
// there until the next call.
struct ticket tickets_take(void);
bool tickets_any(void);

#endif
