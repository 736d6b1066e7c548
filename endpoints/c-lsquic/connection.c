// Connections: opened for a request, ready, lost.
#include <stdlib.h>

#include "client.h"
#include "failure.h"
#include "tickets.h"
#include "tls.h"

// The longest wait for a ticket.
static const moment TICKET_WAIT = 200000000;

// Where sockets begin, by the family of addresses.
static const struct address ANY[] = {
    {.socket.ss_family = AF_INET, .length = sizeof(struct sockaddr_in), .text = "0.0.0.0"},
    {.socket.ss_family = AF_INET6, .length = sizeof(struct sockaddr_in6), .text = "::"},
};

static const struct spec *spec;
static json_object *facts;
static bool proven, ticketless;  // the server gives no tickets
static uint64_t lingering;

json_object *connection_configured(void) {
    json_object *copy = NULL;
    json_object_deep_copy(facts, &copy, NULL);
    return copy;
}

bool connection_any_lingers(void) {
    return lingering > 0;
}

static void detach(struct connection *connection) {
    if (connection->link && connection->link->connection == connection) {
        connection->link->connection = NULL;
    }
    connection->link = NULL;
}

static void close_now(struct connection *connection) {
    if (connection->lingers) {
        connection->lingers = false;
        lingering--;
        alarm_cancel(&connection->ticket_wait);
    }
    if (connection->cnx) {
        lsquic_conn_close(connection->cnx);
        quic_due();
    }
}

static void no_ticket_came(void *of) {
    ticketless = !tickets_any();
    close_now(of);
}

void connection_let_go(struct connection *connection) {
    if (!connection->link) {
        // The server is going away, and the last response has come.
        if (TAILQ_EMPTY(&connection->asked) && TAILQ_EMPTY(&connection->waiting)) {
            close_now(connection);
        }
        return;
    }
    detach(connection);
    if (spec->resumes && connection->ready && !connection->ticketed && !ticketless) {
        connection->lingers = true;
        lingering++;
        alarm_set(&connection->ticket_wait, now() + TICKET_WAIT);
    } else {
        close_now(connection);
    }
}

// The connection is lost, with all its requests.
static void lose(struct connection *connection, enum kind kind, const char *why) {
    struct own *own;
    while ((own = TAILQ_FIRST(&connection->asked)) || (own = TAILQ_FIRST(&connection->waiting))) {
        bool cut = own->cut;
        struct exchange *exchange = own->exchange;
        exchange_detach(exchange);
        engine_ended(exchange, cut ? TRUNCATED : kind, cut ? "the response ended before its announced length" : why);
    }
    detach(connection);
    close_now(connection);
}

static void broken(void *of) {
    struct connection *connection = of;
    const char *why;
    if (connection->cnx && connection->link) {
        enum kind kind = failure_of_kernel(connection, &why);
        lose(connection, kind, why);
    }
}

static struct connection *connection_of(lsquic_conn_t *cnx) {
    return cnx ? (struct connection *)lsquic_conn_get_ctx(cnx) : NULL;
}

// BoringSSL's events: an alert that is sent, and the end of a handshake, before lsquic frees the TLS state.
static void hear_tls(const SSL *ssl, int where, int value) {
    struct connection *connection = connection_of(lsquic_ssl_to_conn(ssl));
    if (!connection) {
        return;
    }
    if (where == SSL_CB_WRITE_ALERT) {
        connection->alert = value & 0xff;
    }
    if (where != SSL_CB_HANDSHAKE_DONE) {
        return;
    }
    connection->handshake = SSL_early_data_accepted(ssl)  ? EARLY_ACCEPTED
                            : connection->early           ? EARLY_REJECTED
                            : SSL_session_reused(ssl)     ? RESUMED
                                                          : FULL;
    if (!tls_is_h3(ssl)) {
        connection->alert = SSL_AD_NO_APPLICATION_PROTOCOL;
    } else if (!proven) {
        proven = true;
        tls_report(ssl, facts);
    }
}

static int keep_ticket(SSL *ssl, SSL_SESSION *session) {
    struct ticket ticket = {.early = spec->early && SSL_SESSION_early_data_capable(session)};
    // Without early data unless the spec asks for it: lsquic would use it.
    SSL_SESSION *plain = spec->early ? NULL : SSL_SESSION_copy_without_early_data(session);
    if (lsquic_ssl_sess_to_resume_info(ssl, plain ? plain : session, &ticket.bytes, &ticket.length) == 0) {
        tickets_keep(ticket);
    }
    SSL_SESSION_free(plain);
    struct connection *connection = connection_of(lsquic_ssl_to_conn(ssl));
    if (connection) {
        connection->ticketed = true;
        if (connection->lingers) {
            close_now(connection);
        }
    }
    return 0;  // the session itself is not kept
}

static lsquic_conn_ctx_t *opened(void *of, lsquic_conn_t *cnx) {
    (void)of;
    struct connection *connection = connection_of(cnx);
    connection->cnx = cnx;
    return (void *)connection;
}

static void shaken(lsquic_conn_t *cnx, enum lsquic_hsk_status status) {
    struct connection *connection = connection_of(cnx);
    if (!connection || (status != LSQ_HSK_OK && status != LSQ_HSK_RESUMED_OK)) {
        return;  // that it is closed follows
    }
    if (connection->alert) {
        lose(connection, PROTOCOL, "another protocol was negotiated (ALPN)");
        return;
    }
    connection->ready = true;
    struct exchange *opener = connection->opener;
    connection->opener = NULL;
    if (opener) {
        opener->record.opened = true;
        opener->record.ready = now();
        opener->record.handshake = (uint8_t)connection->handshake;
    }
    if (connection->early) {
        return;  // they were asked already
    }
    for (struct own *own = TAILQ_FIRST(&connection->waiting), *next; own; own = next) {
        next = TAILQ_NEXT(own, next);
        exchange_ask(own->exchange);
    }
}

static void told_to_go(lsquic_conn_t *cnx, int of_http, uint64_t code, const char *reason, int length) {
    struct connection *connection = connection_of(cnx);
    (void)reason, (void)length;
    if (connection) {
        connection->closed = true;
        connection->of_http = of_http == 1;
        connection->code = code;
    }
}

// The server takes no more requests over this connection: the next one opens another.
static void going_away(lsquic_conn_t *cnx) {
    struct connection *connection = connection_of(cnx);
    if (connection) {
        detach(connection);
    }
}

static void bury(void *of) {
    struct connection *connection = of;
    gate_close(&connection->gate);
    free(connection);
}

static void closed(lsquic_conn_t *cnx) {
    struct connection *connection = connection_of(cnx);
    const char *why;
    lsquic_conn_set_ctx(cnx, NULL);
    enum kind kind = failure_of(connection, &why);
    connection->cnx = NULL;
    lose(connection, kind, why);
    // The loop may be reading its socket now.
    alarm_set(&connection->burial, now());
}

struct connection *connection_new(struct exchange *exchange) {
    const struct address *address = engine_address();
    struct connection *made = allocate(1, sizeof *made);
    *made = (struct connection){.link = exchange->link, .opener = exchange, .number = engine_number()};
    TAILQ_INIT(&made->waiting);
    TAILQ_INIT(&made->asked);
    made->ticket_wait = (struct alarm){.act = no_ticket_came, .of = made};
    made->burial = (struct alarm){.act = bury, .of = made};
    made->gate.broken = broken;
    made->gate.of = made;
    gate_open(&made->gate, &ANY[address->socket.ss_family == AF_INET6], &spec->quic);
    if (!port_connect(&made->gate.port, address)) {
        alarm_set(&made->gate.trouble, now());
    }
    struct ticket ticket = spec->resumes ? tickets_take() : (struct ticket){0};
    made->early = ticket.early;
    if (!lsquic_engine_connect(quic, LSQVER_I001, (struct sockaddr *)&made->gate.port.local.socket,
                               (const struct sockaddr *)&address->socket, &made->gate, (lsquic_conn_ctx_t *)made, spec->server_name,
                               0, ticket.bytes, ticket.length, NULL, 0)) {
        fail(OTHER, "lsquic makes no connection to %s", address->text);
    }
    exchange->record.connection = made->number;
    return exchange->link->connection = made;
}

void connection_prepare(const struct spec *of) {
    static const struct lsquic_stream_if CALLS = {
        .on_new_conn = opened, .on_hsk_done = shaken, .on_goaway_received = going_away, .on_conncloseframe_received = told_to_go,
        .on_conn_closed = closed, .on_new_stream = exchange_streamed, .on_read = exchange_read, .on_write = exchange_write,
        .on_close = exchange_closed,
    };
    spec = of;
    if (spec->qlog_dir) {
        refuse("spec: cannot honour `qlog_dir`: lsquic's log is no qlog");
    }
    if (lsquic_global_init(LSQUIC_GLOBAL_CLIENT) != 0) {
        fail(OTHER, "lsquic cannot be initialized");
    }
    quic_prepare(false, &spec->quic, tls_client(spec, hear_tls, keep_ticket), &CALLS);
    facts = json_object_new_object();
    quic_report(facts);
    // The settings that the kernel grants to every connection's socket.
    struct port trial;
    port_open(&trial, &ANY[spec->addresses[0].socket.ss_family == AF_INET6], &spec->quic, false);
    port_report(&trial, facts);
    port_close(&trial);
}
