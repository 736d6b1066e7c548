// The context and the active settings.
#include "quic.h"

#include <autoqlog.h>
#include <picoquic_newreno.h>
#include <string.h>

#include "contract.h"
#include "packets.h"
#include "sockets.h"

enum {
    MOST_CONNECTIONS = 1 << 16,
    // A connection that hears nothing for so long is given up, in milliseconds; deadlines are the engine's, and are shorter.
    IDLE_MS = 600000,
};

picoquic_quic_t *quic;
static const char *congestion;
static bool x25519;

// picoquic offers secp256r1 first, which costs a round trip more where the peer has X25519 alone, and no function of its says
// otherwise. So this goes by its table of groups, which ends with NULL and is in no header: each entry begins with the group's
// number. Where a version has no such table, its own order remains.
extern const uint16_t *picoquic_key_exchanges[] __attribute__((weak));

enum { GROUP_X25519 = 29 };

static void offer_x25519_alone(void) {
    for (size_t i = 0; picoquic_key_exchanges && picoquic_key_exchanges[i]; i++) {
        if (*picoquic_key_exchanges[i] == GROUP_X25519) {
            picoquic_key_exchanges[0] = picoquic_key_exchanges[i];
            picoquic_key_exchanges[1] = NULL;
            x25519 = true;
            return;
        }
    }
}

// The contract's words and picoquic's.
static const struct { const char *word, *name; } CONTROLS[] = {{"cubic", "cubic"}, {"bbr", "bbr"}, {"reno", "newreno"}};

static void set_congestion(const char *word) {
    // Without a setting, picoquic's default, set by its name because picoquic does not report its choice.
    const picoquic_congestion_algorithm_t *algorithm = PICOQUIC_DEFAULT_CONGESTION_ALGORITHM;
    picoquic_register_all_congestion_control_algorithms();
    for (size_t i = 0; i < sizeof CONTROLS / sizeof *CONTROLS; i++) {
        if (word && strcmp(CONTROLS[i].word, word) == 0) {
            algorithm = picoquic_get_congestion_algorithm(CONTROLS[i].name);
        }
    }
    if (!algorithm) {
        refuse("transport: cannot honour `congestion` = \"%s\": this build of picoquic has no such control", word);
    }
    picoquic_set_default_congestion_algorithm(quic, algorithm);
    congestion = algorithm->congestion_algorithm_id;
    for (size_t i = 0; i < sizeof CONTROLS / sizeof *CONTROLS; i++) {
        if (strcmp(CONTROLS[i].name, congestion) == 0) {
            congestion = CONTROLS[i].word;
        }
    }
}

static void set_logs(const struct stack_settings *settings) {
    if (settings->key_log) {
        picoquic_enable_sslkeylog(quic, 1);
        picoquic_set_key_log_file(quic, settings->key_log);
    }
    if (settings->qlog_dir) {
        picoquic_set_max_simultaneous_logs(quic, MOST_CONNECTIONS);
        picoquic_set_log_level(quic, 1);  // all packets, not the first hundred
        if (picoquic_set_qlog(quic, settings->qlog_dir) != 0) {
            fail(OTHER, "picoquic writes no qlog to %s", settings->qlog_dir);
        }
    }
}

void quic_prepare(const struct stack_settings *settings, picoquic_stream_data_cb_fn callback, void *of) {
    // picoquic keeps tickets only if their file has a name. The file is neither read nor written.
    const char *tickets = settings->keeps_tickets ? "/dev/null" : NULL;
    quic = picoquic_create(MOST_CONNECTIONS, settings->certificate, settings->key, settings->trust_anchor, "h3", callback, of,
                           NULL, NULL, NULL, picoquic_current_time(), NULL, tickets, NULL, 0);
    if (!quic) {
        fail(OTHER, "picoquic makes no context with certificate %s, key %s and trust anchor %s",
             settings->certificate ? settings->certificate : "(none)", settings->key ? settings->key : "(none)",
             settings->trust_anchor ? settings->trust_anchor : "(none)");
    }
    // Alone: the cipher of every connection is known then, which picoquic does not tell.
    if (picoquic_set_cipher_suite(quic, PICOQUIC_AES_128_GCM_SHA256) != 0) {
        fail(OTHER, "this build of picoquic has no TLS_AES_128_GCM_SHA256");
    }
    offer_x25519_alone();
    if (!settings->verify) {
        picoquic_set_null_verifier(quic);
    }
    picoquic_set_default_idle_timeout(quic, IDLE_MS);
    picoquic_set_default_handshake_timeout(quic, IDLE_MS * 1000ull);
    set_congestion(settings->congestion);
    set_logs(settings);
    packets_prepare(settings);
}

json_object *quic_configured(bool client) {
    json_object *facts = sockets_configured();
    const picoquic_tp_t *parameters = picoquic_get_default_tp(quic);
    uint64_t window = client ? parameters->initial_max_stream_data_bidi_local : parameters->initial_max_stream_data_bidi_remote;
    json_object_object_add(facts, "congestion", json_object_new_string(congestion));
    json_object_object_add(facts, "stream_window", json_object_new_uint64(window));
    json_object_object_add(facts, "connection_window", json_object_new_uint64(parameters->initial_max_data));
    return facts;
}

void quic_configured_tls(json_object *facts) {
    json_object_object_add(facts, "alpn", json_object_new_string("h3"));
    json_object_object_add(facts, "cipher", json_object_new_string("TLS_AES_128_GCM_SHA256"));
    if (x25519) {
        json_object_object_add(facts, "group", json_object_new_string("X25519"));
    }
}

void quic_finish(void) {
    packets_finish();
    picoquic_free(quic);
    quic = NULL;
}
