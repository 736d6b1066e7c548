#include "engine.h"

#include <stdlib.h>
#include <sys/resource.h>

#include "driver.h"
#include "loop.h"
#include "period.h"
#include "pool.h"

static void emit_configured(json_object *event) {
    json_object *configured = driver_configured();
    json_object_object_add(configured, "threads", json_object_new_int(1));
    json_object_object_add(event, "configured", configured);
    emit(event);
}

void allow_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void engine_run(const struct spec *spec) {
    allow_descriptors();
    loop_listen();
    driver_prepare(spec);
    records_prepare(spec);
    pool_begin(spec);
    emit_configured(event("ready"));

    loop_await("go");
    pool_check();
    pool_open();
    if (spec->warms_up) {
        period_run(spec, WARM_UP, spec->warm_up, now());
    }
    if (spec->per_request) {
        pool_renumber();  // the connections of the warm-up are not in the results
    }
    const struct library *library = driver_library();
    if (library->warm) {
        library->warm();
    }
    emit(event("warm"));

    moment zero = loop_await("go");
    moment last = period_run(spec, MEASURED, spec->extent, zero);
    json_object *end = event("end");
    json_object_object_add(end, "window_ns", json_object_new_int64(last - zero));
    emit(end);

    loop_await("finish");
    pool_close();
    records_write(spec, zero);
    json_object *done = event("done");
    json_object_object_add(done, "requests", json_object_new_uint64(records_succeeded()));
    json_object_object_add(done, "errors", records_errors());
    if (library->transport) {
        json_object_object_add(done, "transport", library->transport());
    }
    emit_configured(done);
}
