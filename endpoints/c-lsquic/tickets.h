// Session tickets.
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
// The newest ticket. Each is returned once, except the last one, until another comes. Without bytes: none. The bytes are
// valid until the next call.
struct ticket tickets_take(void);
bool tickets_any(void);

#endif
