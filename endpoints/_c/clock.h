// The one monotonic clock of all records, in nanoseconds.
#ifndef CLOCK_H
#define CLOCK_H

#include <stdint.h>
#include <time.h>

// 0 stands for a moment that did not happen.
typedef int64_t moment;

static inline moment now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (moment)t.tv_sec * 1000000000 + t.tv_nsec;
}

#endif
