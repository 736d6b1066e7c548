#include "server.h"

#include "loop.h"
#include "pattern.h"
#include "server_spec.h"
#include "serving.h"
#include "site.h"
#include "tls.h"
#include "worker.h"

// The idle time-out towards a client. Clients set a shorter time, and the shorter one counts (RFC 9000,
// section 10.1); this one is for clients that set none.
static const int64_t IDLE_NS = 600 * 1000000000LL;

static struct worker *workers;
static uint64_t thread_count;
static struct party party = {.server = true, .add_id = worker_add_id, .remove_id = worker_remove_id, .over = worker_over};

static void established(struct quic *quic) {
    (void)quic;
}

static void start(const struct server_spec *spec) {
    thread_count = spec->threads;
    workers = allocate(thread_count, sizeof *workers);
    struct address local = spec->address;
    for (uint64_t i = 0; i < spec->threads; i++) {
        workers[i].party = &party;
        port_open(&workers[i].port, &local, &spec->quic, spec->threads > 1);
        local = workers[0].port.local;  // with the number that the kernel chose
    }
    for (uint64_t i = 0; i < spec->threads; i++) {
        worker_start(&workers[i]);
    }
}

static json_object *configured(void) {
    json_object *made = json_object_new_object();
    party_report(&party, made);
    port_report(&workers[0].port, made);
    json_object_object_add(made, "threads", json_object_new_uint64(thread_count));
    json_object_object_add(made, "streams", json_object_new_uint64(party.params.initial_max_streams_bidi));
    return made;
}

static uint64_t answered(void) {
    uint64_t total = 0;
    for (uint64_t i = 0; i < thread_count; i++) {
        total += atomic_load_explicit(&workers[i].desk.answered, memory_order_relaxed);
    }
    return total;
}

void server_run(const char *spec_path) {
    static struct server_spec spec;
    spec = server_spec_read(spec_path, driver_library());
    loop_open();
    site_prepare(&spec);
    pattern_prepare();
    party.tls = tls_server(spec.certificate, spec.key, spec.key_log, spec.resumes, spec.early);
    party.early = spec.early;
    party.qlog_dir = spec.qlog_dir;
    party.http = ANSWER;
    party.established = established;
    party_prepare(&party, &spec.quic, IDLE_NS);
    start(&spec);

    const struct sockaddr_in *local = (const struct sockaddr_in *)&workers[0].port.local.socket;  // IPv6 has it there too
    serving_run(ntohs(local->sin_port), configured(), answered);

    json_object *active_settings = configured();
    struct accounts accounts = {0};
    for (uint64_t i = 0; i < thread_count; i++) {
        worker_stop(&workers[i]);
        accounts_merge(&accounts, &workers[i].accounts);
    }
    serving_done(answered(), active_settings, accounts_report(&accounts));
}
