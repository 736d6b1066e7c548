// What is to happen at a moment: a heap of alarms, the next one on top.
#ifndef ALARM_H
#define ALARM_H

#include <stdint.h>

#include "clock.h"

struct alarm {
    void (*act)(void *of);
    void *of;
    moment at;
    uint64_t place;  // in the heap, from 1; 0: it is not set
};

// Sets it, or sets it anew.
void alarm_set(struct alarm *alarm, moment at);
void alarm_cancel(struct alarm *alarm);
// When the next one is due; INT64_MAX: none is set.
moment alarm_next(void);
// Rings those that are due.
void alarm_ring(void);

#endif
