#include "line.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "accounts.h"
#include "failure.h"
#include "loop.h"
#include "request.h"
#include "tls.h"

// The idle time-out towards a server: the default that RFC 9308, section 3.2, recommends.
static const int64_t SHORTEST_IDLE = 30 * 1000000000LL;
// The longest wait for a ticket, beside the round trips that it may take.
static const moment TICKET_WAIT = 100 * 1000000;

static const struct spec *spec;
static struct party party;
static struct line *all;
static struct address any;
static struct accounts accounts;
static json_object *facts;
static bool told;

static void bury(struct line *line) {
    alarm_cancel(&line->end);
    if (line->quic->established) {
        ngtcp2_conn_info info = quic_info(line->quic);
        accounts_add(&accounts, &info, line->was_before ? &line->before : NULL);
    }
    quic_close(line->quic, NGHTTP3_H3_NO_ERROR);
    quic_free(line->quic);
    loop_watch(line->port.descriptor, 0, NULL, NULL);
    port_close(&line->port);
    *(line->previous ? &line->previous->next : &all) = line->next;
    if (line->next) {
        line->next->previous = line->previous;
    }
    free(line);
}

static void bury_late(void *of) {
    bury(of);
}

// Free it as soon as no caller uses it.
static void bury_soon(struct line *line) {
    line->ends = true;
    alarm_set(&line->end, 0);
}

static void let_go(struct line *line) {
    if (line->link) {
        line->link->line = NULL;
        line->link = NULL;
    }
}

// The connection calls this when it ended by itself.
static void over(struct quic *quic) {
    struct line *line = quic->owner;
    let_go(line);
    bury_soon(line);
    const char *why;
    enum kind kind = failure_of(quic, &why);
    while (line->first) {
        struct own *own = line->first;
        if (!own->asked) {
            own->exchange->record.bytes_out = 0;
        }
        line_leave(own);
        engine_ended(own->exchange, kind, why);
    }
}

static void tell(const struct line *line) {
    if (told) {
        return;
    }
    told = true;
    tls_report(line->quic->ssl, facts);
}

static void established(struct quic *quic) {
    struct line *line = quic->owner;
    int early = SSL_get_early_data_status(quic->ssl);
    line->handshake = early == SSL_EARLY_DATA_ACCEPTED ? EARLY_ACCEPTED
                      : line->early                    ? EARLY_REJECTED
                      : SSL_session_reused(quic->ssl)  ? RESUMED
                                                       : FULL;
    tell(line);
    if (line->opener) {
        struct record *record = &line->opener->record;
        record->handshake = (uint8_t)line->handshake;
        if (!line->early) {
            record->opened = true;
            record->ready = now();
        }
    }
    request_send_waiting(line);
}

static void more_streams(struct quic *quic) {
    request_send_waiting(quic->owner);
}

// The server did not take it: ngtcp2 and nghttp3 have begun anew.
static void early_rejected(struct quic *quic) {
    struct line *line = quic->owner;
    for (struct own *own = line->first; own; own = own->next) {
        own->stream = -1;
    }
}

static int keep_ticket(SSL *ssl, SSL_SESSION *session) {
    const ngtcp2_crypto_conn_ref *reference = SSL_get_app_data(ssl);
    struct quic *quic = reference->user_data;
    struct line *line = quic->owner;
    struct ticket ticket = {.session = session};
    ngtcp2_ssize length = ngtcp2_conn_encode_0rtt_transport_params2(quic->conn, ticket.params, sizeof ticket.params);
    ticket.params_length = length > 0 ? (size_t)length : 0;
    tickets_keep(&ticket);
    line->ticketed = true;
    if (!line->link && !line->ends) {
        bury_soon(line);
    }
    return 1;  // the reference is ours
}

static void take(void *of, const struct datagram *datagram) {
    quic_read(((struct line *)of)->quic, datagram);
}

static void happen(void *of, int descriptor, uint32_t events) {
    struct line *line = of;
    bool was_held = line->port.held;
    if (events & EPOLLOUT) {
        port_release(&line->port);
    }
    if (events & (EPOLLIN | EPOLLERR)) {
        port_receive(&line->port, take, line);
    }
    if (!line->ends) {
        quic_write(line->quic);
    }
    if (line->ends) {
        bury(line);
    } else if (was_held != (bool)line->port.held) {
        loop_watch(descriptor, line->port.held ? EPOLLIN | EPOLLOUT : EPOLLIN, happen, line);
    }
}

void line_prepare(const struct spec *of) {
    spec = of;
    any.socket.ss_family = spec->addresses[0].socket.ss_family;
    any.length = spec->addresses[0].length;
    any.text = "any address";
    party = (struct party){
        .early = spec->early, .tls = tls_client(spec, keep_ticket), .qlog_dir = spec->qlog_dir, .http = REQUEST,
        .established = established, .more_streams = more_streams, .early_rejected = early_rejected, .over = over,
    };
    party_prepare(&party, &spec->quic, 2 * spec->request_ns > SHORTEST_IDLE ? 2 * spec->request_ns : SHORTEST_IDLE);
    facts = json_object_new_object();
    party_report(&party, facts);
    // A test, so that a setting that the kernel does not grant is refused before the measurement.
    struct port port;
    port_open(&port, &any, &spec->quic, false);
    port_report(&port, facts);
    port_close(&port);
}

static struct line *open_line(struct exchange *exchange) {
    struct line *line = allocate(1, sizeof *line);
    *line = (struct line){.link = exchange->link, .opener = exchange, .number = engine_number()};
    line->end = (struct alarm){.act = bury_late, .of = line};
    const struct address *server = engine_address();
    port_open(&line->port, &any, &spec->quic, false);
    exchange->record.connection = line->number;
    if (!port_connect(&line->port, server)) {
        port_close(&line->port);
        free(line);
        return NULL;
    }
    struct ticket ticket = spec->resumes ? tickets_take() : (struct ticket){0};
    line->quic = quic_dial(&party, &line->port, server, spec->server_name, ticket.session, ticket.params, ticket.params_length, line);
    SSL_SESSION_free(ticket.session);
    line->early = line->quic->http;
    line->next = all;
    if (all) {
        all->previous = line;
    }
    all = line;
    loop_watch(line->port.descriptor, EPOLLIN, happen, line);
    exchange->link->line = line;
    if (line->early) {
        exchange->record.opened = true;
        exchange->record.ready = now();  // the keys of 0-RTT are there
    }
    return line;
}

struct line *line_of(struct exchange *exchange) {
    struct line *line = exchange->link->line;
    if (line) {
        exchange->record.connection = line->number;
        return line;
    }
    return open_line(exchange);
}

void line_join(struct line *line, struct own *own) {
    own->line = line;
    own->previous = NULL;
    own->next = line->first;
    if (own->next) {
        own->next->previous = own;
    }
    line->first = own;
}

void line_leave(struct own *own) {
    struct line *line = own->line;
    *(own->previous ? &own->previous->next : &line->first) = own->next;
    if (own->next) {
        own->next->previous = own->previous;
    }
    own->line = NULL;
    if (line->opener == own->exchange) {
        line->opener = NULL;
    }
}

void line_write(struct line *line) {
    bool was_held = line->port.held;
    quic_write(line->quic);
    if (!line->ends && was_held != (bool)line->port.held) {
        loop_watch(line->port.descriptor, EPOLLIN | EPOLLOUT, happen, line);
    }
}

void line_drop(struct link *link) {
    struct line *line = link->line;
    if (!line) {
        return;
    }
    let_go(line);
    if (spec->resumes && !line->ticketed && line->quic->established) {
        alarm_set(&line->end, now() + (moment)(3 * quic_info(line->quic).smoothed_rtt) + TICKET_WAIT);
    } else {
        bury_soon(line);
    }
}

static void bury_those(bool linked) {
    for (struct line *line = all, *next; line; line = next) {
        next = line->next;
        if (linked || !line->link) {
            let_go(line);
            bury(line);
        }
    }
}

bool line_lingers(void) {
    for (const struct line *line = all; line; line = line->next) {
        if (!line->link) {
            return true;
        }
    }
    return false;
}

void line_warm(void) {
    bury_those(false);
    accounts = (struct accounts){0};
    for (struct line *line = all; line; line = line->next) {
        line->before = quic_info(line->quic);
        line->was_before = line->quic->established;
    }
}

void line_finish(void) {
    bury_those(true);
}

json_object *line_facts(void) {
    json_object *copy = NULL;
    json_object_deep_copy(facts, &copy, NULL);
    return copy;
}

json_object *line_transport(void) {
    return accounts_report(&accounts);
}

void line_note_limit(void) {
    static bool noted;
    if (noted) {
        return;
    }
    noted = true;
    json_object_object_add(facts, "stream_limit_reached", json_object_new_boolean(true));
}
