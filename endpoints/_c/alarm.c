#include "alarm.h"

#include <stdlib.h>

#include "contract.h"

// Each thread of a server has its own.
static _Thread_local struct alarm **heap;  // heap[0] is not used
static _Thread_local uint64_t count, room;

static void put(uint64_t place, struct alarm *alarm) {
    heap[place] = alarm;
    alarm->place = place;
}

static void rise(uint64_t place, struct alarm *alarm) {
    while (place > 1 && heap[place / 2]->at > alarm->at) {
        put(place, heap[place / 2]);
        place /= 2;
    }
    put(place, alarm);
}

static void sink(uint64_t place, struct alarm *alarm) {
    for (uint64_t child; (child = 2 * place) <= count; place = child) {
        child += child < count && heap[child + 1]->at < heap[child]->at;
        if (heap[child]->at >= alarm->at) {
            break;
        }
        put(place, heap[child]);
    }
    put(place, alarm);
}

void alarm_cancel(struct alarm *alarm) {
    uint64_t place = alarm->place;
    if (!place) {
        return;
    }
    alarm->place = 0;
    struct alarm *last = heap[count--];
    if (last != alarm) {
        if (place > 1 && heap[place / 2]->at > last->at) {
            rise(place, last);
        } else {
            sink(place, last);
        }
    }
}

void alarm_set(struct alarm *alarm, moment at) {
    alarm_cancel(alarm);
    if (count + 1 >= room) {
        room = room ? 2 * room : 256;
        heap = realloc(heap, room * sizeof *heap);
        if (!heap) {
            fail(OTHER, "no memory for %llu alarms", (unsigned long long)room);
        }
    }
    alarm->at = at;
    count++;
    rise(count, alarm);
}

moment alarm_next(void) {
    return count ? heap[1]->at : INT64_MAX;
}

void alarm_ring(void) {
    while (count && heap[1]->at <= now()) {
        struct alarm *due = heap[1];
        alarm_cancel(due);
        due->act(due->of);
    }
}
