// Alarms: calls at a moment, in a heap with the next one on top.
#ifndef ALARM_H
#define ALARM_H

#include <stdint.h>

#include "clock.h"

struct alarm {
    void (*act)(void *of);
    void *of;
    moment at;
    uint64_t place;  // its place in the heap, from 1; 0: not set
};

// Sets or resets an alarm.
void alarm_set(struct alarm *alarm, moment at);
void alarm_cancel(struct alarm *alarm);
// The moment of the next alarm; INT64_MAX: none is set.
moment alarm_next(void);
// Rings the due alarms.
void alarm_ring(void);

#endif
