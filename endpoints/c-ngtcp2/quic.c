// The life of a connection: made, read, written, ended.
#include "quic.h"

#include <errno.h>
#include <openssl/rand.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"
#include "qlog.h"
#include "wiring.h"

static ngtcp2_conn *conn_of(ngtcp2_crypto_conn_ref *reference) {
    return ((struct quic *)reference->user_data)->conn;
}

static ngtcp2_path path_to(const struct quic *quic, struct sockaddr *peer, socklen_t length) {
    return (ngtcp2_path){
        .local = {(struct sockaddr *)&quic->port->local.socket, quic->port->local.length}, .remote = {peer, length},
    };
}

static void set_timer(struct quic *quic) {
    uint64_t at = ngtcp2_conn_get_expiry2(quic->conn);
    if (at == UINT64_MAX) {
        alarm_cancel(&quic->timer);
    } else {
        alarm_set(&quic->timer, at < INT64_MAX ? (moment)at : INT64_MAX);
    }
}

static void deliver(struct quic *quic, const ngtcp2_path *path, const ngtcp2_pkt_info *info, const uint8_t *bytes, size_t length,
                    size_t segment) {
    bool connected = !quic->party->server;
    port_send(quic->port, &(struct parcel){
        .to = connected ? NULL : path->remote.addr, .to_length = connected ? 0 : path->remote.addrlen,
        .bytes = bytes, .length = length, .segment = segment, .mark = info->ecn,
    });
}

static void say_goodbye(struct quic *quic) {
    uint8_t packet[NGTCP2_MAX_UDP_PAYLOAD_SIZE];
    ngtcp2_path_storage path;
    ngtcp2_path_storage_zero(&path);
    ngtcp2_pkt_info info = {0};
    ngtcp2_ssize length = ngtcp2_conn_write_connection_close(quic->conn, &path.path, &info, packet, sizeof packet, &quic->error,
                                                             (ngtcp2_tstamp)now());
    if (length > 0 && !quic->port->held) {
        deliver(quic, &path.path, &info, packet, (size_t)length, (size_t)length);
    }
}

// ngtcp2 reports that the connection cannot go on.
static void end(struct quic *quic, int why) {
    if (quic->over) {
        return;
    }
    quic->over = true;
    alarm_cancel(&quic->timer);
    if (why == NGTCP2_ERR_DRAINING) {
        quic->error = *ngtcp2_conn_get_ccerr2(quic->conn);  // the peer's words
    } else {
        if (why == NGTCP2_ERR_CRYPTO) {
            ngtcp2_ccerr_set_tls_alert(&quic->error, ngtcp2_conn_get_tls_alert2(quic->conn), NULL, 0);
        } else if (why != NGTCP2_ERR_CALLBACK_FAILURE) {
            ngtcp2_ccerr_set_liberr(&quic->error, why, NULL, 0);  // a callback that failed has noted why
        }
        if (why != NGTCP2_ERR_IDLE_CLOSE && why != NGTCP2_ERR_DROP_CONN && why != NGTCP2_ERR_HANDSHAKE_TIMEOUT) {
            say_goodbye(quic);
        }
    }
    quic->party->over(quic);
}

void quic_lost(struct quic *quic) {
    end(quic, NGTCP2_ERR_DROP_CONN);
}

void quic_read(struct quic *quic, const struct datagram *datagram) {
    if (quic->over) {
        return;
    }
    ngtcp2_path path = path_to(quic, datagram->from, datagram->from_length);
    ngtcp2_pkt_info info = {.ecn = datagram->mark};
    int why = ngtcp2_conn_read_pkt(quic->conn, &path, &info, datagram->bytes, datagram->length, (ngtcp2_tstamp)now());
    if (why != 0) {
        end(quic, why);
    }
}

void quic_write(struct quic *quic) {
    // Of the thread: the kernel has copied it, or the port has.
    static _Thread_local uint8_t *buffer;
    buffer = buffer ? buffer : allocate(1, LARGEST);
    while (!quic->over && !quic->port->held) {
        ngtcp2_path_storage path;
        ngtcp2_path_storage_zero(&path);
        ngtcp2_pkt_info info = {0};
        size_t segment = 0;
        ngtcp2_ssize length = ngtcp2_conn_write_aggregate_pkt(quic->conn, &path.path, &info, buffer, LARGEST, &segment,
                                                              wiring_write_packet, (ngtcp2_tstamp)now());
        if (length < 0) {
            end(quic, (int)length);
            return;
        }
        if (length == 0) {
            break;
        }
        deliver(quic, &path.path, &info, buffer, (size_t)length, segment);
    }
    if (quic->over) {
        return;
    }
    if (quic->port->noted && !quic->party->server) {
        quic_lost(quic);
        return;
    }
    if (quic->port->held) {
        alarm_cancel(&quic->timer);  // until the port is free
    } else {
        set_timer(quic);
    }
}

static void expired(void *of) {
    struct quic *quic = of;
    int why = ngtcp2_conn_handle_expiry(quic->conn, (ngtcp2_tstamp)now());
    if (why != 0) {
        end(quic, why);
    } else {
        quic_write(quic);
    }
}

static struct quic *begin(const struct party *party, struct port *port, void *owner) {
    struct quic *quic = allocate(1, sizeof *quic);
    *quic = (struct quic){.party = party, .port = port, .owner = owner, .qlog = -1};
    quic->timer = (struct alarm){.act = expired, .of = quic};
    quic->reference = (ngtcp2_crypto_conn_ref){conn_of, quic};
    ngtcp2_ccerr_default(&quic->error);
    quic->ssl = SSL_new(party->tls);
    if (!quic->ssl || ngtcp2_crypto_ossl_ctx_new(&quic->crypto, quic->ssl) != 0) {
        fail(OTHER, "no memory for another connection");
    }
    SSL_set_app_data(quic->ssl, &quic->reference);
    return quic;
}

struct quic *quic_accept(const struct party *party, struct port *port, const struct datagram *first, const ngtcp2_pkt_hd *header,
                         void *owner) {
    struct quic *quic = begin(party, port, owner);
    if (ngtcp2_crypto_ossl_configure_server_session(quic->ssl) != 0) {
        fail(OTHER, "OpenSSL takes no QUIC");
    }
    SSL_set_accept_state(quic->ssl);
    SSL_set_quic_tls_early_data_enabled(quic->ssl, party->early);
    ngtcp2_settings settings = party->settings;
    settings.initial_ts = (ngtcp2_tstamp)now();
    qlog_begin(quic, &settings);
    ngtcp2_transport_params params = party->params;
    params.original_dcid = header->dcid;
    params.original_dcid_present = 1;
    ngtcp2_cid id = {.datalen = ID_LENGTH};
    RAND_bytes(id.data, ID_LENGTH);
    ngtcp2_path path = path_to(quic, first->from, first->from_length);
    if (ngtcp2_conn_server_new(&quic->conn, &header->scid, &id, &path, header->version, wiring(party), &settings, &params, NULL,
                               quic) != 0) {
        fail(OTHER, "no memory for another connection");
    }
    ngtcp2_conn_set_tls_native_handle(quic->conn, quic->crypto);
    party->add_id(quic, &id);
    party->add_id(quic, &header->dcid);
    return quic;
}

struct quic *quic_dial(const struct party *party, struct port *port, const struct address *server, const char *name,
                       SSL_SESSION *ticket, const uint8_t *params, size_t params_length, void *owner) {
    struct quic *quic = begin(party, port, owner);
    if (ngtcp2_crypto_ossl_configure_client_session(quic->ssl) != 0) {
        fail(OTHER, "OpenSSL takes no QUIC");
    }
    SSL_set_connect_state(quic->ssl);
    SSL_set_alpn_protos(quic->ssl, (const unsigned char *)NGHTTP3_ALPN_H3, sizeof NGHTTP3_ALPN_H3 - 1);
    SSL_set_tlsext_host_name(quic->ssl, name);
    SSL_set1_host(quic->ssl, name);
    ngtcp2_settings settings = party->settings;
    settings.initial_ts = (ngtcp2_tstamp)now();
    qlog_begin(quic, &settings);
    ngtcp2_cid from = {.datalen = ID_LENGTH}, to = {.datalen = 18};
    RAND_bytes(from.data, (int)from.datalen);
    RAND_bytes(to.data, (int)to.datalen);
    ngtcp2_path path = path_to(quic, (struct sockaddr *)&server->socket, server->length);
    if (ngtcp2_conn_client_new(&quic->conn, &to, &from, &path, NGTCP2_PROTO_VER_V1, wiring(party), &settings, &party->params, NULL,
                               quic) != 0) {
        fail(OTHER, "no memory for another connection");
    }
    ngtcp2_conn_set_tls_native_handle(quic->conn, quic->crypto);
    if (ticket && SSL_set_session(quic->ssl, ticket) == 1 && party->early && params_length &&
        SSL_SESSION_get_max_early_data(ticket) &&
        ngtcp2_conn_decode_and_set_0rtt_transport_params(quic->conn, params, params_length) == 0) {
        SSL_set_quic_tls_early_data_enabled(quic->ssl, 1);
        if (wiring_begin_http(quic) != 0) {
            fail(OTHER, "no memory for HTTP/3");
        }
    }
    return quic;
}

void quic_close(struct quic *quic, uint64_t code) {
    if (!quic->over) {
        quic->over = true;
        alarm_cancel(&quic->timer);
        ngtcp2_ccerr_set_application_error(&quic->error, code, NULL, 0);
        say_goodbye(quic);
    }
}

void quic_free(struct quic *quic) {
    alarm_cancel(&quic->timer);
    nghttp3_conn_del(quic->http);
    ngtcp2_conn_del(quic->conn);
    SSL_set_app_data(quic->ssl, NULL);
    ngtcp2_crypto_ossl_ctx_del(quic->crypto);
    // QUIC has no goodbye of TLS, without which OpenSSL would hold the session for broken, and resume it no more.
    SSL_set_shutdown(quic->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
    SSL_free(quic->ssl);
    if (quic->qlog >= 0) {
        close(quic->qlog);
    }
    free(quic);
}

void quic_consumed(struct quic *quic, int64_t stream, size_t length) {
    ngtcp2_conn_extend_max_stream_offset(quic->conn, stream, length);
    ngtcp2_conn_extend_max_offset(quic->conn, length);
}

ngtcp2_conn_info quic_info(const struct quic *quic) {
    ngtcp2_conn_info info;
    ngtcp2_conn_get_conn_info2(quic->conn, &info);
    return info;
}
