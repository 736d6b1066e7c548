// The active settings of every connection of an endpoint.
#include <string.h>

#include "contract.h"
#include "quic.h"

// Windows of ngtcp2's own programs, if the spec sets none: they begin small and grow.
static const uint64_t STREAM_BEGINS = 256 << 10, STREAM_MOST = 6 << 20, CONNECTION_BEGINS = 1 << 20, CONNECTION_MOST = 6 << 20;
static const uint64_t CLIENT_STREAM_BEGINS = 6 << 20, CLIENT_STREAM_MOST = 16 << 20, CLIENT_CONNECTION_BEGINS = 15 << 20,
                      CLIENT_CONNECTION_MOST = 24 << 20;

static const char *const CONGESTION[] = {
    [NGTCP2_CC_ALGO_RENO] = "reno", [NGTCP2_CC_ALGO_CUBIC] = "cubic", [NGTCP2_CC_ALGO_BBR] = "bbr",
};

static void set_windows(struct party *party, const struct quic_settings *wanted) {
    bool server = party->server;
    ngtcp2_settings *settings = &party->settings;
    ngtcp2_transport_params *params = &party->params;
    uint64_t stream = server ? STREAM_BEGINS : CLIENT_STREAM_BEGINS;
    settings->max_stream_window = server ? STREAM_MOST : CLIENT_STREAM_MOST;
    if (wanted->stream_window >= 0) {
        stream = (uint64_t)wanted->stream_window;
        settings->max_stream_window = 0;  // it does not grow
    }
    params->initial_max_stream_data_bidi_local = params->initial_max_stream_data_bidi_remote = stream;
    params->initial_max_stream_data_uni = stream;
    params->initial_max_data = server ? CONNECTION_BEGINS : CLIENT_CONNECTION_BEGINS;
    settings->max_window = server ? CONNECTION_MOST : CLIENT_CONNECTION_MOST;
    if (wanted->connection_window >= 0) {
        params->initial_max_data = (uint64_t)wanted->connection_window;
        settings->max_window = 0;
    }
}

void party_prepare(struct party *party, const struct quic_settings *wanted, int64_t idle_ns) {
    if (ngtcp2_crypto_ossl_init() != 0) {
        fail(OTHER, "OpenSSL has not what QUIC needs");
    }
    ngtcp2_settings *settings = &party->settings;
    ngtcp2_transport_params *params = &party->params;
    ngtcp2_settings_default(settings);
    ngtcp2_transport_params_default(params);
    for (size_t i = 0; wanted->congestion && i < sizeof CONGESTION / sizeof *CONGESTION; i++) {
        if (strcmp(CONGESTION[i], wanted->congestion) == 0) {
            settings->cc_algo = (ngtcp2_cc_algo)i;
        }
    }
    if (wanted->max_udp_payload >= 0) {
        // From the first packet on, and never more: no discovery.
        settings->max_tx_udp_payload_size = (size_t)wanted->max_udp_payload;
        settings->no_tx_udp_payload_size_shaping = 1;
        settings->no_pmtud = 1;
    }
    settings->glitch_ratelim_burst = ODDITIES;
    settings->handshake_timeout = UINT64_MAX;  // deadlines are the engine's, and the idle time-out ends the others
    set_windows(party, wanted);
    params->initial_max_streams_bidi = party->server ? STREAMS : 0;
    params->initial_max_streams_uni = 3;
    params->max_idle_timeout = (ngtcp2_duration)idle_ns;
    params->active_connection_id_limit = 7;
}

void party_report(const struct party *party, json_object *configured) {
    const ngtcp2_settings *settings = &party->settings;
    const ngtcp2_transport_params *params = &party->params;
    const struct { const char *name; uint64_t value; } all[] = {
        {"stream_window", params->initial_max_stream_data_bidi_remote},
        {"connection_window", params->initial_max_data},
        {"largest_stream_window", settings->max_stream_window},
        {"largest_connection_window", settings->max_window},
        {"max_udp_payload", settings->max_tx_udp_payload_size},
        {"initial_udp_payload", settings->no_pmtud ? settings->max_tx_udp_payload_size : NGTCP2_MAX_UDP_PAYLOAD_SIZE},
    };
    json_object_object_add(configured, "congestion", json_object_new_string(CONGESTION[settings->cc_algo]));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (all[i].value) {  // 0: windows do not grow
            json_object_object_add(configured, all[i].name, json_object_new_uint64(all[i].value));
        }
    }
}
