// The warm-up or the measured window: requests are sent by the schedule until its extent is used up.
#ifndef PERIOD_H
#define PERIOD_H

#include "driver.h"

enum phase { WARM_UP, MEASURED };

// A lane that is free.
void period_lane(struct exchange *lane);
// Runs a period. Returns the end of its last request when none is in flight.
moment period_run(const struct spec *spec, enum phase phase, struct extent extent, moment start);
// A request of the period has ended, its record is complete.
void period_ended(struct exchange *lane);

#endif
