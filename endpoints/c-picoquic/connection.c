// Connections: opened for a request, ready, lost.
#include <errno.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client.h"
#include "failure.h"

// The authorities of the machine, where Debian has them.
#define SYSTEM_ANCHOR "/etc/ssl/certs/ca-certificates.crt"

static const struct spec *spec;
static bool proven;

bool connection_proven(void) {
    return proven;
}

void connection_let_go(struct connection *connection) {
    if (connection->link && connection->link->connection == connection) {
        connection->link->connection = NULL;
    }
    h3zero_callback_delete_context(connection->cnx, connection->http3);
    quic_close(connection->cnx, H3ZERO_NO_ERROR);
    free(connection);
}

// The connection is lost, with all its requests.
static void lose(struct connection *connection, enum kind kind, const char *why) {
    struct exchange *exchange;
    while ((exchange = connection->exchanges)) {
        exchange_detach(exchange);
        engine_ended(exchange, kind, why);
    }
    connection_let_go(connection);
}

static void ready(struct connection *connection) {
    const char *alpn = picoquic_tls_get_negotiated_alpn(connection->cnx);
    if (!alpn || strcmp(alpn, ALPN[H3]) != 0) {
        lose(connection, PROTOCOL, "another protocol was negotiated (ALPN)");
        return;
    }
    proven = true;
    connection->ready = true;
    struct exchange *opener = connection->opener;
    connection->opener = NULL;
    if (opener) {
        opener->record.opened = true;
        opener->record.ready = now();
        opener->record.handshake = picoquic_tls_is_psk_handshake(connection->cnx) ? RESUMED : FULL;
    }
    for (struct exchange *exchange = connection->exchanges; exchange; exchange = own_of(exchange)->next) {
        exchange_ask(exchange);
    }
}

static int hear(picoquic_cnx_t *cnx, uint64_t id, uint8_t *bytes, size_t length, picoquic_call_back_event_t event, void *of,
                void *mine) {
    struct connection *connection = of;
    bool answer = PICOQUIC_IS_BIDIR_STREAM_ID(id);
    const char *why;
    switch (event) {
    case picoquic_callback_close:
    case picoquic_callback_application_close:
    case picoquic_callback_stateless_reset: {
        enum kind kind = failure_of(cnx, event, connection->ready, &why);
        lose(connection, kind, why);
        return 0;
    }
    case picoquic_callback_almost_ready:
    case picoquic_callback_ready:
        http3_control(cnx, connection->http3, id, bytes, length, event, NULL);
        if (!connection->ready) {
            ready(connection);
        }
        return 0;
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        if (answer) {
            if (mine) {
                exchange_receive(mine, bytes, length, event == picoquic_callback_stream_fin);
            }
            return 0;
        }
        break;
    case picoquic_callback_prepare_to_send:
        if (answer) {
            exchange_provide(mine, bytes, length);
            return 0;
        }
        break;
    case picoquic_callback_stream_reset:
        if (answer) {
            if (mine) {
                picoquic_discard_stream(cnx, id, H3ZERO_REQUEST_CANCELLED);
                exchange_end(mine, RESET, "the server reset the stream");
            }
            return 0;
        }
        break;
    case picoquic_callback_stop_sending:  // the server needs no more of the request; its answer may still come
    case picoquic_callback_stream_released:
        if (answer) {
            return 0;
        }
        break;
    default:
        break;
    }
    return http3_control(cnx, connection->http3, id, bytes, length, event, answer ? NULL : mine);
}

struct connection *connection_new(struct exchange *exchange) {
    const struct address *address = engine_address();
    struct connection *made = allocate(1, sizeof *made);
    *made = (struct connection){.http3 = http3_new(), .link = exchange->link, .opener = exchange, .number = engine_number()};
    made->cnx = picoquic_create_client_cnx(quic, (struct sockaddr *)&address->socket, picoquic_current_time(), 0, spec->server_name,
                                           ALPN[H3], hear, made);
    if (!made->cnx) {
        fail(OTHER, "picoquic makes no connection to %s", address->text);
    }
    exchange->record.connection = made->number;
    return exchange->link->connection = made;
}

static void unreachable(picoquic_cnx_t *cnx, int reason) {
    struct connection *connection = picoquic_get_callback_context(cnx);
    if (connection) {
        lose(connection, UNREACHABLE, strerror(reason));
    }
}

static void open_socket(int family) {
    struct sockaddr_storage any = {.ss_family = (sa_family_t)family};
    quic_bind((struct sockaddr *)&any, family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
}

// Without a trust anchor picoquic would silently verify nothing.
static void check_anchor(const char *path) {
    FILE *file = fopen(path, "r");
    X509 *authority = file ? PEM_read_X509(file, NULL, NULL, NULL) : NULL;
    if (!authority) {
        fail(OTHER, "reading an authority to trust from %s: %s", path, file ? "there is none in it" : strerror(errno));
    }
    X509_free(authority);
    fclose(file);
}

void connection_prepare(const struct spec *of) {
    const char *anchor = of->trust_anchor ? of->trust_anchor : SYSTEM_ANCHOR;
    spec = of;
    if (spec->verify) {
        check_anchor(anchor);
    }
    struct stack_settings settings = {
        .trust_anchor = spec->verify ? anchor : NULL, .key_log = spec->key_log, .qlog_dir = spec->qlog_dir, .verify = spec->verify,
        .keeps_tickets = spec->resumes, .gso = -1, .udp_send_buffer = spec->udp_send_buffer,
        .udp_receive_buffer = spec->udp_receive_buffer, .unreachable = unreachable,
    };
    quic_prepare(&settings, hear, NULL);
    for (uint64_t i = 0; i < spec->address_count; i++) {
        open_socket(spec->addresses[i].socket.ss_family);
    }
}
