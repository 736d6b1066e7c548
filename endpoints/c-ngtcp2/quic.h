// A QUIC connection with its HTTP/3, of a server or a client: ngtcp2, nghttp3 and OpenSSL's TLS, one upon the other.
#ifndef QUIC_H
#define QUIC_H

#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <ngtcp2/ngtcp2_crypto_ossl.h>
#include <openssl/ssl.h>

#include "alarm.h"
#include "port.h"

// Requests that a peer may have in flight on one connection, the same as of the built-in endpoint.
enum { STREAMS = 256, ID_LENGTH = 8 };

// The largest limit on oddities of a peer, so it never applies. ngtcp2 and nghttp3 close a connection after 1000 and 33 a
// second; frames of unknown types are among them, which some libraries send with every request.
#define ODDITIES (UINT64_C(1) << 40)

struct request;

struct quic {
    const struct party *party;
    struct port *port;
    ngtcp2_conn *conn;
    nghttp3_conn *http;  // NULL: not yet
    SSL *ssl;
    ngtcp2_crypto_ossl_ctx *crypto;
    ngtcp2_crypto_conn_ref reference;
    struct alarm timer;
    ngtcp2_ccerr error;  // why it ended
    bool established, over;
    int qlog;
    // The owner's.
    void *owner;
    struct quic *next, *previous;
    struct request *requests;
    bool touched;
};

// The common part of an endpoint's connections, and the callbacks of their owner.
struct party {
    bool server, early;
    SSL_CTX *tls;
    ngtcp2_settings settings;
    ngtcp2_transport_params params;
    const char *qlog_dir;
    nghttp3_callbacks http;  // the callbacks that the library does not need itself are the owner's
    // A connection ID that becomes valid, or invalid; may be NULL.
    void (*add_id)(struct quic *quic, const ngtcp2_cid *id);
    void (*remove_id)(struct quic *quic, const ngtcp2_cid *id);
    void (*established)(struct quic *quic);
    // Called within ngtcp2; the callee may call ngtcp2 only to open streams.
    void (*more_streams)(struct quic *quic);
    void (*early_rejected)(struct quic *quic);
    // The connection ended by itself; free it now or later.
    void (*over)(struct quic *quic);
};

// Fills in settings and parameters from the spec, or else from ngtcp2's own programs.
void party_prepare(struct party *party, const struct quic_settings *wanted, int64_t idle_ns);
// The active settings of every connection.
void party_report(const struct party *party, json_object *configured);

// A connection that a client begins by this packet, whose header is read.
struct quic *quic_accept(const struct party *party, struct port *port, const struct datagram *first, const ngtcp2_pkt_hd *header,
                         void *owner);
// A connection to a server. With a ticket and its transport parameters, requests can be sent at once.
struct quic *quic_dial(const struct party *party, struct port *port, const struct address *server, const char *name,
                       SSL_SESSION *ticket, const uint8_t *params, size_t params_length, void *owner);
// The peer is unreachable.
void quic_lost(struct quic *quic);
void quic_read(struct quic *quic, const struct datagram *datagram);
// Sends all packets that may be sent now.
void quic_write(struct quic *quic);
// The owner ends it, politely.
void quic_close(struct quic *quic, uint64_t code);
void quic_free(struct quic *quic);
// Bytes of a body were used up: the peer may send as many more.
void quic_consumed(struct quic *quic, int64_t stream, size_t length);
ngtcp2_conn_info quic_info(const struct quic *quic);

#endif
