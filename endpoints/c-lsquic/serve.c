// The server: its connections.
#include "serve.h"

#include <netinet/in.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "account.h"
#include "contract.h"
#include "engine.h"
#include "gate.h"
#include "loop.h"
#include "pattern.h"
#include "quic.h"
#include "server_spec.h"
#include "serving.h"
#include "site.h"
#include "stream.h"
#include "tls.h"

struct connection {
    lsquic_conn_t *cnx;
    bool accounted;
    LIST_ENTRY(connection) next;
};

static LIST_HEAD(, connection) connections = LIST_HEAD_INITIALIZER(connections);

static lsquic_conn_ctx_t *opened(void *of, lsquic_conn_t *cnx) {
    (void)of;
    struct connection *made = allocate(1, sizeof *made);
    made->cnx = cnx;
    LIST_INSERT_HEAD(&connections, made, next);
    return (void *)made;
}

static void account(struct connection *connection) {
    if (!connection->accounted) {
        connection->accounted = true;
        account_add(connection->cnx);
    }
}

// The client says goodbye: the last moment for lsquic's counts of the transport.
static void leaving(lsquic_conn_t *cnx, int of_http, uint64_t code, const char *reason, int length) {
    (void)of_http, (void)code, (void)reason, (void)length;
    struct connection *connection = (void *)lsquic_conn_get_ctx(cnx);
    if (connection) {
        account(connection);
    }
}

static void closed(lsquic_conn_t *cnx) {
    struct connection *connection = (void *)lsquic_conn_get_ctx(cnx);
    lsquic_conn_set_ctx(cnx, NULL);
    if (!connection) {
        return;
    }
    if (!connection->accounted) {
        account_miss();
    }
    LIST_REMOVE(connection, next);
    free(connection);
}

static void refuse_what_it_cannot(const struct server_spec *spec) {
    if (spec->threads != 1) {
        refuse("spec: cannot honour `threads` = %llu: it has one", (unsigned long long)spec->threads);
    }
    if (spec->qlog_dir) {
        refuse("spec: cannot honour `qlog_dir`: lsquic's log is no qlog");
    }
}

static uint16_t port_of(const struct port *port) {
    const struct sockaddr_storage *name = &port->local.socket;
    return ntohs(name->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)name)->sin6_port
                                             : ((const struct sockaddr_in *)name)->sin_port);
}

void serve(const char *path) {
    static const struct lsquic_stream_if CALLS = {
        .on_new_conn = opened, .on_conncloseframe_received = leaving, .on_conn_closed = closed, .on_new_stream = stream_opened,
        .on_read = stream_read, .on_write = stream_write, .on_close = stream_closed,
    };
    loop_open();
    static struct server_spec spec;
    spec = server_spec_read(path, driver_library());
    refuse_what_it_cannot(&spec);
    allow_descriptors();
    site_prepare(&spec);
    pattern_prepare();
    if (lsquic_global_init(LSQUIC_GLOBAL_SERVER) != 0) {
        fail(OTHER, "lsquic cannot be initialized");
    }
    quic_prepare(true, &spec.quic, tls_server(&spec), &CALLS);
    static struct gate gate;
    gate_open(&gate, &spec.address, &spec.quic);
    json_object *configured = json_object_new_object();
    quic_report(configured);
    port_report(&gate.port, configured);
    json_object_object_add(configured, "threads", json_object_new_int(1));
    serving_run(port_of(&gate.port), json_object_get(configured), stream_answered);
    struct connection *connection;
    LIST_FOREACH(connection, &connections, next) {
        account(connection);
        lsquic_conn_abort(connection->cnx);
    }
    quic_finish();
    gate_close(&gate);
    serving_done(stream_answered(), configured, account_report());
}
