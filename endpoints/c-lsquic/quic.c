#include "quic.h"

#include <limits.h>
#include <string.h>

#include "alarm.h"
#include "contract.h"
#include "gate.h"
#include "head.h"

enum {
    // A server's idle time-out of a connection, in seconds: the longest that lsquic accepts.
    IDLE_S = 600,
};

lsquic_engine_t *quic;
static struct lsquic_engine_settings settings;
static struct ssl_ctx_st *tls;
static bool serves;
static int64_t payload;
static struct alarm wake;

// The contract's words for lsquic's numbers; without a word, lsquic's default.
static const char *const CONTROLS[] = {NULL, "cubic", "bbr", "adaptive"};

static void set_congestion(const char *word) {
    for (unsigned i = 1; word && i < sizeof CONTROLS / sizeof *CONTROLS; i++) {
        if (strcmp(CONTROLS[i], word) == 0) {
            settings.es_cc_algo = i;
            return;
        }
    }
    if (word) {
        refuse("transport: cannot honour `congestion` = \"%s\": lsquic has cubic and bbr", word);
    }
}

static void set_window(const char *field, int64_t wanted, unsigned *window) {
    if (wanted > UINT_MAX) {
        refuse("transport: cannot honour `%s` = %lld: lsquic's windows go to %u", field, (long long)wanted, UINT_MAX);
    }
    if (wanted >= 0) {
        *window = (unsigned)wanted;
    }
}

// The window of a request stream, by the side that grants it.
static unsigned *stream_window(void) {
    return serves ? &settings.es_init_max_stream_data_bidi_remote : &settings.es_init_max_stream_data_bidi_local;
}

static void set(const struct quic_settings *wanted) {
    lsquic_engine_init_settings(&settings, serves ? LSENG_HTTP_SERVER : LSENG_HTTP);
    settings.es_versions = 1 << LSQVER_I001;
    settings.es_noprogress_timeout = 0;
    settings.es_check_tp_sanity = 0;
    if (serves) {
        settings.es_idle_timeout = IDLE_S;
    } else {
        settings.es_handshake_to = 0;
        settings.es_honor_prst = 1;
    }
    set_congestion(wanted->congestion);
    set_window("stream_window", wanted->stream_window, stream_window());
    set_window("connection_window", wanted->connection_window, &settings.es_init_max_data);
    payload = wanted->max_udp_payload;
    if (payload >= 0) {
        settings.es_base_plpmtu = (unsigned short)payload;
        settings.es_dplpmtud = 0;
    }
}

static struct ssl_ctx_st *tls_of(void *peer, const struct sockaddr *local) {
    (void)peer, (void)local;
    return tls;
}

static void wake_up(void *of) {
    (void)of;
    quic_process();
}

void quic_prepare(bool server, const struct quic_settings *wanted, struct ssl_ctx_st *of, const struct lsquic_stream_if *calls) {
    unsigned flags = server ? LSENG_HTTP_SERVER : LSENG_HTTP;
    char why[200] = "no reason given";
    serves = server;
    tls = of;
    wake = (struct alarm){.act = wake_up};
    set(wanted);
    if (lsquic_engine_check_settings(&settings, flags, why, sizeof why) != 0) {
        refuse("transport: lsquic does not take these settings: %s", why);
    }
    quic = lsquic_engine_new(flags, &(struct lsquic_engine_api){
        .ea_settings = &settings, .ea_stream_if = calls, .ea_packets_out = gate_send, .ea_get_ssl_ctx = tls_of,
        .ea_hsi_if = &HEADS,
    });
    if (!quic) {
        fail(OTHER, "lsquic makes no engine");
    }
}

void quic_due(void) {
    alarm_set(&wake, now());
}

void quic_process(void) {
    int microseconds;
    lsquic_engine_process_conns(quic);
    if (lsquic_engine_earliest_adv_tick(quic, &microseconds)) {
        alarm_set(&wake, now() + (microseconds > 0 ? (moment)microseconds * 1000 : 0));
    } else {
        alarm_cancel(&wake);
    }
}

void quic_report(json_object *configured) {
    json_object_object_add(configured, "congestion", json_object_new_string(CONTROLS[settings.es_cc_algo]));
    json_object_object_add(configured, "stream_window", json_object_new_int64(*stream_window()));
    json_object_object_add(configured, "connection_window", json_object_new_int64(settings.es_init_max_data));
    if (payload >= 0) {
        json_object_object_add(configured, "max_udp_payload", json_object_new_int64(settings.es_base_plpmtu));
    }
}

void quic_finish(void) {
    lsquic_engine_process_conns(quic);
    alarm_cancel(&wake);
    lsquic_engine_destroy(quic);
    lsquic_global_cleanup();
    quic = NULL;
}
