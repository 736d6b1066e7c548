// The server: its connections.
#include "serve.h"

#include <stdlib.h>
#include <sys/random.h>

#include "account.h"
#include "engine.h"
#include "loop.h"
#include "pattern.h"
#include "server_spec.h"
#include "serving.h"
#include "site.h"
#include "stream.h"

static struct connection {
    picoquic_cnx_t *cnx;
    h3zero_callback_ctx_t *http3;
    struct stream *streams;
    struct connection *next, **link;
} *connections;

static void connection_free(struct connection *connection) {
    account_add(connection->cnx);
    while (connection->streams) {
        stream_free(connection->streams);
    }
    *connection->link = connection->next;
    if (connection->next) {
        connection->next->link = connection->link;
    }
    // Removes itself from the connection, which gets no further call.
    h3zero_callback_delete_context(connection->cnx, connection->http3);
    free(connection);
}

static struct connection *connection_new(picoquic_cnx_t *cnx, picoquic_stream_data_cb_fn callback) {
    struct connection *made = allocate(1, sizeof *made);
    *made = (struct connection){.cnx = cnx, .http3 = http3_new(), .next = connections, .link = &connections};
    if (connections) {
        connections->link = &made->next;
    }
    connections = made;
    picoquic_set_callback(cnx, callback, made);
    return made;
}

static bool is_over(picoquic_call_back_event_t event) {
    return event == picoquic_callback_close || event == picoquic_callback_application_close ||
           event == picoquic_callback_stateless_reset;
}

static int hear(picoquic_cnx_t *cnx, uint64_t id, uint8_t *bytes, size_t length, picoquic_call_back_event_t event, void *of,
                void *mine) {
    if (is_over(event) && !of) {
        return 0;  // it never was one
    }
    struct connection *connection = of ? of : connection_new(cnx, hear);
    if (is_over(event)) {
        connection_free(connection);
        return 0;
    }
    bool request = PICOQUIC_IS_BIDIR_STREAM_ID(id);
    switch (event) {
    case picoquic_callback_stream_data:
    case picoquic_callback_stream_fin:
        if (request) {
            stream_receive(mine, &connection->streams, cnx, id, bytes, length, event == picoquic_callback_stream_fin);
            return 0;
        }
        break;
    case picoquic_callback_stream_reset:
    case picoquic_callback_stop_sending:
        if (request) {
            if (mine) {
                stream_give_up(mine, H3ZERO_REQUEST_CANCELLED);
            }
            return 0;
        }
        break;
    case picoquic_callback_prepare_to_send:
        if (request) {
            stream_provide(mine, bytes, length);
            return 0;
        }
        break;
    case picoquic_callback_stream_released:
        if (request) {
            return 0;
        }
        break;
    default:
        break;
    }
    return http3_control(cnx, connection->http3, id, bytes, length, event, request ? NULL : mine);
}

// picoquic issues tickets to every client. With a new key before each handshake it can read none of them.
static void make_tickets_worthless(void) {
    uint8_t key[32];
    if (getrandom(key, sizeof key, 0) != sizeof key) {
        fail(OTHER, "the kernel has no random bytes");
    }
    key[0] = 0;  // its first byte names the one of two keys that it replaces
    picoquic_set_ticket_key(quic, key, sizeof key);
}

// Settings that it has no function for, or another meaning.
static void refuse_what_it_cannot(const struct server_spec *spec) {
    if (spec->resumes && !spec->early) {
        refuse("tls: cannot honour `early_data` = false with `resumption`: picoquic accepts early data with every ticket");
    }
    if (spec->threads != 1) {
        refuse("spec: cannot honour `threads` = %llu: it has one", (unsigned long long)spec->threads);
    }
    if (spec->quic.gro == 1) {
        refuse("transport: cannot honour `gro` = true: picoquic's functions read one packet at a time");
    }
    if (spec->quic.stream_window >= 0 || spec->quic.connection_window >= 0 || spec->quic.max_udp_payload >= 0) {
        refuse("transport: cannot honour `stream_window`, `connection_window` and `max_udp_payload`: they are picoquic's own");
    }
}

void serve(const char *path) {
    loop_listen();
    static struct server_spec spec;
    spec = server_spec_read(path, driver_library());
    refuse_what_it_cannot(&spec);
    allow_descriptors();
    site_prepare(&spec);
    pattern_prepare();
    struct stack_settings settings = {
        .certificate = spec.certificate, .key = spec.key, .key_log = spec.key_log, .qlog_dir = spec.qlog_dir,
        .congestion = spec.quic.congestion, .verify = true, .gso = spec.quic.gso, .udp_send_buffer = spec.quic.udp_send_buffer,
        .udp_receive_buffer = spec.quic.udp_receive_buffer, .before_handshake = spec.resumes ? NULL : make_tickets_worthless,
    };
    quic_prepare(&settings, hear, NULL);
    uint16_t port = quic_bind((struct sockaddr *)&spec.address.socket, spec.address.length);
    json_object *configured = quic_configured(false);
    json_object_object_add(configured, "threads", json_object_new_int(1));
    serving_run(port, json_object_get(configured), stream_answered);
    while (connections) {
        picoquic_cnx_t *cnx = connections->cnx;
        connection_free(connections);
        quic_close(cnx, H3ZERO_NO_ERROR);
    }
    quic_finish();
    serving_done(stream_answered(), configured, account_report());
}
