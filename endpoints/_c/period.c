#include "period.h"

#include <math.h>

#include "loop.h"
#include "pool.h"
#include "queue.h"
#include "random.h"

struct arrival {
    moment intended;
    uint64_t user;
};
QUEUE(struct arrival, arrivals)
QUEUE(struct exchange *, lanes)

static struct worker {
    struct alarm pause;
    struct random random;
    uint64_t user;
} *workers;

static struct arrivals waiting;
static struct lanes idle;

static struct period {
    const struct spec *spec;
    enum phase phase;
    moment start, until, last;
    uint64_t left;       // requests that may still start, without `until`
    uint64_t users;      // workers that go on, or requests in flight
    bool arrive;         // an open loop: more will arrive
    double offset;       // of the last arrival of a Poisson process, in nanoseconds
    uint64_t number;     // of the next arrival at equal intervals
    struct random random;
    struct alarm arrival, last_start;
} period;

// Whether another request may start at a moment.
static bool take(moment at) {
    if (period.until) {
        return at < period.until;
    }
    return period.left && period.left--;
}

static void pump(void) {
    while (waiting.length) {
        if (!idle.length && (!period.spec->open_loop || !pool_grow())) {
            return;
        }
        struct arrival next = arrivals_take(&waiting);
        moment at = now();
        // The start decides: "none starts after the end".
        if (!period.spec->open_loop && !take(at > next.intended ? at : next.intended)) {
            period.users--;
            continue;
        }
        period.users += period.spec->open_loop;
        struct exchange *lane = lanes_take(&idle);
        lane->user = next.user;
        pool_send(lane, next.intended);
    }
}

void period_lane(struct exchange *lane) {
    lanes_put(&idle, lane);
}

void period_ended(struct exchange *lane) {
    const struct record *record = &lane->record;
    period.last = record->end > period.last ? record->end : period.last;
    if (period.phase == MEASURED) {
        records_keep(record);
    }
    lanes_put(&idle, lane);
    if (period.spec->open_loop) {
        period.users--;
        return;
    }
    struct worker *worker = &workers[lane->user];
    if (period.spec->pauses) {
        uint64_t span = period.spec->longest_pause - period.spec->shortest_pause;
        uint64_t length = period.spec->shortest_pause + (span ? random_up_to(&worker->random, span) : 0);
        alarm_set(&worker->pause, record->end + (moment)length);
    } else {
        // Without a pause, the intended start is the moment when the worker is free, which is now.
        arrivals_put(&waiting, (struct arrival){now(), worker->user});
    }
}

static void paused(void *of) {
    struct worker *worker = of;
    arrivals_put(&waiting, (struct arrival){worker->pause.at, worker->user});
}

static moment next_arrival(void) {
    double interval = 1e9 / period.spec->rate;
    if (period.spec->poisson) {
        period.offset -= log1p(-random_unit(&period.random)) * interval;
        return period.start + (moment)period.offset;
    }
    // Computed from the number of the arrival, not as a sum, so rounding errors do not accumulate.
    return period.start + (moment)((double)period.number++ * interval);
}

// A request has its own connection or stream if the policy allows it. Otherwise it waits in line, with its
// response time running since its arrival. To drop waiting requests at the end would leave out the slowest ones; but the
// wait has a limit, the request time-out after the end.
static void arrive(void *of) {
    (void)of;
    arrivals_put(&waiting, (struct arrival){period.arrival.at, 0});
    moment next = next_arrival();
    if (take(next)) {
        alarm_set(&period.arrival, next);
        return;
    }
    period.arrive = false;
    alarm_set(&period.last_start, now() + period.spec->request_ns);
}

static void give_up(void *of) {
    (void)of;
    while (waiting.length) {
        struct arrival late = arrivals_take(&waiting);
        moment at = now();
        struct record record = {.intended = late.intended, .start = at, .end = at, .failure = TIMEOUT};
        period.last = at;
        if (period.phase == MEASURED) {
            records_keep(&record);
            pool_complain(TIMEOUT, "the request waited for a free connection until its time-out after the end of the window");
        }
    }
}

static bool over(void) {
    return !period.users && !period.arrive && !waiting.length;
}

static void begin_workers(void) {
    if (!workers) {
        workers = allocate(period.spec->workers, sizeof *workers);
    }
    period.users = period.spec->workers;
    for (uint64_t i = 0; i < period.spec->workers; i++) {
        workers[i] = (struct worker){{.act = paused, .of = &workers[i]}, random_of(period.spec->seed, period.phase, i), i};
        arrivals_put(&waiting, (struct arrival){period.start, i});
    }
}

moment period_run(const struct spec *spec, enum phase phase, struct extent extent, moment start) {
    period = (struct period){
        .spec = spec, .phase = phase, .start = start, .last = start, .left = extent.requests,
        .until = extent.requests ? 0 : start + extent.duration, .random = random_of(spec->seed, phase, 0),
        .arrival = {.act = arrive}, .last_start = {.act = give_up},
    };
    if (spec->open_loop) {
        moment first = next_arrival();
        if ((period.arrive = take(first))) {
            alarm_set(&period.arrival, first);
        }
    } else {
        begin_workers();
    }
    loop_until(over, pump);
    alarm_cancel(&period.last_start);
    return period.last;
}
