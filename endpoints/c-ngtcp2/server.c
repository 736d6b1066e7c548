#include "server.h"

#include <stdio.h>
#include <string.h>

#include "contract.h"
#include "server_spec.h"
#include "site.h"
#include "tls.h"
#include "worker.h"

// How long a connection may hear nothing from its client. Clients set a shorter time, and the shorter one counts (RFC 9000,
// section 10.1); this one is for those that set none.
static const int64_t IDLE_NS = 600 * 1000000000LL;

static struct party party = {.server = true, .add_id = worker_add_id, .remove_id = worker_remove_id, .over = worker_over};

static void established(struct quic *quic) {
    (void)quic;
}

static struct worker *start(const struct server_spec *spec) {
    struct worker *workers = allocate(spec->threads, sizeof *workers);
    struct address local = spec->address;
    for (uint64_t i = 0; i < spec->threads; i++) {
        workers[i].party = &party;
        port_open(&workers[i].port, &local, &spec->quic, spec->threads > 1);
        local = workers[0].port.local;  // with the number that the kernel chose
    }
    for (uint64_t i = 0; i < spec->threads; i++) {
        worker_start(&workers[i]);
    }
    return workers;
}

static json_object *configured(const struct server_spec *spec, const struct worker *workers) {
    json_object *made = json_object_new_object();
    party_report(&party, made);
    port_report(&workers[0].port, made);
    json_object_object_add(made, "threads", json_object_new_uint64(spec->threads));
    json_object_object_add(made, "streams", json_object_new_uint64(party.params.initial_max_streams_bidi));
    return made;
}

static void say_count(const struct server_spec *spec, const struct worker *workers) {
    uint64_t answered = 0;
    for (uint64_t i = 0; i < spec->threads; i++) {
        answered += atomic_load_explicit(&workers[i].desk.answered, memory_order_relaxed);
    }
    json_object *counted = event("counted");
    json_object_object_add(counted, "requests", json_object_new_uint64(answered));
    emit(counted);
}

// Carries on the conversation until the server is to stop.
static void converse(const struct server_spec *spec, const struct worker *workers) {
    char line[64];
    while (fgets(line, sizeof line, stdin) && strcmp(line, "stop\n") != 0) {
        if (strcmp(line, "count\n") == 0) {
            say_count(spec, workers);
        }
    }
}

void server_run(const char *spec_path) {
    static struct server_spec spec;
    spec = server_spec_read(spec_path);
    site_prepare(&spec);
    answer_prepare();
    party.tls = tls_server(spec.certificate, spec.key, spec.key_log, spec.resumes, spec.early);
    party.early = spec.early;
    party.qlog_dir = spec.qlog_dir;
    party.http = ANSWER;
    party.established = established;
    party_prepare(&party, &spec.quic, IDLE_NS);
    struct worker *workers = start(&spec);

    json_object *ready = event("ready");
    const struct sockaddr_in *local = (const struct sockaddr_in *)&workers[0].port.local.socket;  // IPv6 has it there too
    json_object_object_add(ready, "port", json_object_new_int(ntohs(local->sin_port)));
    json_object_object_add(ready, "configured", configured(&spec, workers));
    emit(ready);
    converse(&spec, workers);

    json_object *in_force = configured(&spec, workers);
    struct accounts accounts = {0};
    for (uint64_t i = 0; i < spec.threads; i++) {
        worker_stop(&workers[i]);
        accounts_merge(&accounts, &workers[i].accounts);
    }
    json_object *done = event("done");
    json_object_object_add(done, "configured", in_force);
    json_object_object_add(done, "transport", accounts_report(&accounts));
    emit(done);
}
