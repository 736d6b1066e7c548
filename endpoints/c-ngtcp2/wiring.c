#include "wiring.h"

#include <openssl/rand.h>

#include "tls.h"

static int broken(struct quic *quic, int why) {
    ngtcp2_ccerr_set_application_error(&quic->error, nghttp3_err_infer_quic_app_error_code(why), NULL, 0);
    return NGTCP2_ERR_CALLBACK_FAILURE;
}

// From ngtcp2 to nghttp3.

static int stream_data(ngtcp2_conn *conn, uint32_t flags, int64_t stream, uint64_t offset, const uint8_t *bytes, size_t length,
                       void *of, void *user) {
    (void)offset, (void)user;
    struct quic *quic = of;
    if (!quic->http) {
        return broken(quic, NGHTTP3_ERR_H3_INTERNAL_ERROR);
    }
    nghttp3_ssize used = nghttp3_conn_read_stream2(quic->http, stream, bytes, length, flags & NGTCP2_STREAM_DATA_FLAG_FIN,
                                                   ngtcp2_conn_get_timestamp(conn));
    if (used < 0) {
        return broken(quic, (int)used);
    }
    quic_consumed(quic, stream, (size_t)used);
    return 0;
}

static int acknowledged(ngtcp2_conn *conn, int64_t stream, uint64_t offset, uint64_t length, void *of, void *user) {
    (void)conn, (void)offset, (void)user;
    struct quic *quic = of;
    int why = quic->http ? nghttp3_conn_add_ack_offset(quic->http, stream, length) : 0;
    return why ? broken(quic, why) : 0;
}

static int closed(ngtcp2_conn *conn, uint32_t flags, int64_t stream, uint64_t code, void *of, void *user) {
    (void)user;
    struct quic *quic = of;
    code = flags & NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET ? code : NGHTTP3_H3_NO_ERROR;
    int why = quic->http ? nghttp3_conn_close_stream(quic->http, stream, code) : 0;
    if (why && why != NGHTTP3_ERR_STREAM_NOT_FOUND) {
        return broken(quic, why);
    }
    if (ngtcp2_is_bidi_stream(stream) && !ngtcp2_conn_is_local_stream2(conn, stream)) {
        ngtcp2_conn_extend_max_streams_bidi(conn, 1);
    }
    return 0;
}

static int peer_reset(ngtcp2_conn *conn, int64_t stream, uint64_t size, uint64_t code, void *of, void *user) {
    (void)conn, (void)size, (void)code, (void)user;
    struct quic *quic = of;
    int why = quic->http ? nghttp3_conn_shutdown_stream_read(quic->http, stream) : 0;
    return why ? broken(quic, why) : 0;
}

static int stopped(ngtcp2_conn *conn, int64_t stream, uint64_t code, void *of, void *user) {
    return peer_reset(conn, stream, 0, code, of, user);
}

static int may_send_more(ngtcp2_conn *conn, int64_t stream, uint64_t most, void *of, void *user) {
    (void)conn, (void)most, (void)user;
    struct quic *quic = of;
    int why = quic->http ? nghttp3_conn_unblock_stream(quic->http, stream) : 0;
    return why ? broken(quic, why) : 0;
}

static int more_for_peer(ngtcp2_conn *conn, uint64_t most, void *of) {
    (void)conn;
    struct quic *quic = of;
    if (quic->http) {
        nghttp3_conn_set_max_client_streams_bidi(quic->http, most);
    }
    return 0;
}

static int more_streams(ngtcp2_conn *conn, uint64_t most, void *of) {
    (void)conn, (void)most;
    struct quic *quic = of;
    quic->party->more_streams(quic);
    return 0;
}

static int key(ngtcp2_conn *conn, ngtcp2_encryption_level level, void *of) {
    (void)conn;
    struct quic *quic = of;
    return level == NGTCP2_ENCRYPTION_LEVEL_1RTT && !quic->http ? wiring_begin_http(quic) : 0;
}

static int handshake_completed(ngtcp2_conn *conn, void *of) {
    struct quic *quic = of;
    const struct party *party = quic->party;
    if (!tls_is_h3(quic->ssl)) {
        ngtcp2_ccerr_set_tls_alert(&quic->error, SSL_AD_NO_APPLICATION_PROTOCOL, NULL, 0);
        return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    // Early data was offered, and OpenSSL reports only now whether it was accepted.
    if (!party->server && SSL_get_early_data_status(quic->ssl) == SSL_EARLY_DATA_REJECTED &&
        ngtcp2_conn_tls_early_data_rejected(conn) != 0) {
        return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    quic->established = true;
    party->established(quic);
    return 0;
}

static int early_rejected(ngtcp2_conn *conn, void *of) {
    (void)conn;
    struct quic *quic = of;
    // ngtcp2 has forgotten the streams; HTTP/3 begins anew.
    nghttp3_conn_del(quic->http);
    quic->http = NULL;
    if (wiring_begin_http(quic) != 0) {
        return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    quic->party->early_rejected(quic);
    return 0;
}

static void random_bytes(uint8_t *to, size_t length, const ngtcp2_rand_ctx *context) {
    (void)context;
    RAND_bytes(to, (int)length);
}

static int new_id(ngtcp2_conn *conn, ngtcp2_cid *id, ngtcp2_stateless_reset_token *token, size_t length, void *of) {
    (void)conn;
    struct quic *quic = of;
    id->datalen = length;
    if (RAND_bytes(id->data, (int)length) != 1 || RAND_bytes(token->data, sizeof token->data) != 1) {
        return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    if (quic->party->add_id) {
        quic->party->add_id(quic, id);
    }
    return 0;
}

static int remove_id(ngtcp2_conn *conn, const ngtcp2_cid *id, void *of) {
    (void)conn;
    struct quic *quic = of;
    if (quic->party->remove_id) {
        quic->party->remove_id(quic, id);
    }
    return 0;
}

#define BOTH                                                                                                        \
    .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb, .encrypt = ngtcp2_crypto_encrypt_cb,                     \
    .decrypt = ngtcp2_crypto_decrypt_cb, .hp_mask = ngtcp2_crypto_hp_mask_cb, .update_key = ngtcp2_crypto_update_key_cb, \
    .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,                                              \
    .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,                                          \
    .get_path_challenge_data2 = ngtcp2_crypto_get_path_challenge_data2_cb,                                          \
    .version_negotiation = ngtcp2_crypto_version_negotiation_cb, .rand = random_bytes,                              \
    .recv_stream_data = stream_data, .acked_stream_data_offset = acknowledged, .stream_close = closed,              \
    .stream_reset = peer_reset, .stream_stop_sending = stopped, .extend_max_stream_data = may_send_more,            \
    .handshake_completed = handshake_completed, .get_new_connection_id2 = new_id, .remove_connection_id = remove_id

static const ngtcp2_callbacks SERVER = {
    BOTH, .recv_client_initial = ngtcp2_crypto_recv_client_initial_cb, .extend_max_remote_streams_bidi = more_for_peer,
    // A server can answer before the handshake is over.
    .recv_tx_key = key,
};
static const ngtcp2_callbacks CLIENT = {
    BOTH, .client_initial = ngtcp2_crypto_client_initial_cb, .recv_retry = ngtcp2_crypto_recv_retry_cb,
    .extend_max_local_streams_bidi = more_streams, .tls_early_data_rejected = early_rejected, .recv_rx_key = key,
};

const ngtcp2_callbacks *wiring(const struct party *party) {
    return party->server ? &SERVER : &CLIENT;
}

// From nghttp3 to ngtcp2.

static int stop_peer(nghttp3_conn *http, int64_t stream, uint64_t code, void *of, void *user) {
    (void)http, (void)user;
    struct quic *quic = of;
    return ngtcp2_conn_shutdown_stream_read(quic->conn, 0, stream, code) ? NGHTTP3_ERR_CALLBACK_FAILURE : 0;
}

static int reset(nghttp3_conn *http, int64_t stream, uint64_t code, void *of, void *user) {
    (void)http, (void)user;
    struct quic *quic = of;
    return ngtcp2_conn_shutdown_stream_write(quic->conn, 0, stream, code) ? NGHTTP3_ERR_CALLBACK_FAILURE : 0;
}

static int consumed_later(nghttp3_conn *http, int64_t stream, size_t length, void *of, void *user) {
    (void)http, (void)user;
    quic_consumed(of, stream, length);
    return 0;
}

int wiring_begin_http(struct quic *quic) {
    const struct party *party = quic->party;
    nghttp3_callbacks callbacks = party->http;
    callbacks.stop_sending = stop_peer;
    callbacks.reset_stream = reset;
    callbacks.deferred_consume = consumed_later;
    nghttp3_settings settings;
    nghttp3_settings_default(&settings);
    // As ngtcp2's own programs.
    settings.qpack_max_dtable_capacity = 4096;
    settings.qpack_blocked_streams = 100;
    settings.glitch_ratelim_burst = ODDITIES;
    int64_t control, encoder, decoder;
    int why = party->server ? nghttp3_conn_server_new(&quic->http, &callbacks, &settings, NULL, quic)
                            : nghttp3_conn_client_new(&quic->http, &callbacks, &settings, NULL, quic);
    if (why == 0 && party->server) {
        nghttp3_conn_set_max_client_streams_bidi(quic->http, STREAMS);
    }
    if (why != 0 || ngtcp2_conn_open_uni_stream(quic->conn, &control, NULL) != 0 ||
        ngtcp2_conn_open_uni_stream(quic->conn, &encoder, NULL) != 0 ||
        ngtcp2_conn_open_uni_stream(quic->conn, &decoder, NULL) != 0 ||
        nghttp3_conn_bind_control_stream(quic->http, control) != 0 ||
        nghttp3_conn_bind_qpack_streams(quic->http, encoder, decoder) != 0) {
        return broken(quic, NGHTTP3_ERR_H3_INTERNAL_ERROR);  // a peer that allows fewer than three streams
    }
    return 0;
}

// The result of bytes offered to ngtcp2. Returns whether nghttp3 knows it, and can be asked for more.
static bool settle(struct quic *quic, int64_t stream, ngtcp2_ssize written, ngtcp2_ssize taken) {
    switch (written) {
    case NGTCP2_ERR_STREAM_DATA_BLOCKED:
        nghttp3_conn_block_stream(quic->http, stream);
        return true;
    case NGTCP2_ERR_STREAM_SHUT_WR:
        nghttp3_conn_shutdown_stream_write(quic->http, stream);
        return true;
    case NGTCP2_ERR_WRITE_MORE:
        return nghttp3_conn_add_write_offset(quic->http, stream, (size_t)taken) == 0;
    default:
        return false;
    }
}

ngtcp2_ssize wiring_write_packet(ngtcp2_conn *conn, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *packet, size_t room,
                                 ngtcp2_tstamp at, void *of) {
    enum { PARTS = 16 };
    struct quic *quic = of;
    for (;;) {
        int64_t stream = -1;
        int last = 0;
        nghttp3_vec parts[PARTS];
        nghttp3_ssize count = 0;
        if (quic->http && ngtcp2_conn_get_max_data_left2(conn)) {
            count = nghttp3_conn_writev_stream(quic->http, &stream, &last, parts, PARTS);
            if (count < 0) {
                return broken(quic, (int)count);
            }
        }
        ngtcp2_ssize taken = -1;
        uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (last ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
        ngtcp2_ssize written = ngtcp2_conn_writev_stream(conn, path, info, packet, room, &taken, flags, stream,
                                                         (const ngtcp2_vec *)parts, (size_t)count, at);
        if (written >= 0) {
            if (taken >= 0 && nghttp3_conn_add_write_offset(quic->http, stream, (size_t)taken) != 0) {
                return broken(quic, NGHTTP3_ERR_H3_INTERNAL_ERROR);
            }
            return written;
        }
        if (!settle(quic, stream, written, taken)) {
            return written;
        }
    }
}
