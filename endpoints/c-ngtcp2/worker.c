#include "worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "contract.h"
#include "loop.h"

static _Thread_local bool stopping;

static bool over(void) {
    return stopping;
}

static void nothing(void) {}

void worker_add_id(struct quic *quic, const ngtcp2_cid *id) {
    ids_add(&((struct worker *)quic->owner)->ids, id, quic);
}

void worker_remove_id(struct quic *quic, const ngtcp2_cid *id) {
    ids_remove(&((struct worker *)quic->owner)->ids, id);
}

static void forget_ids(struct worker *worker, const struct quic *quic) {
    size_t count = ngtcp2_conn_get_scid2(quic->conn, NULL);
    ngtcp2_cid *all = allocate(count, sizeof *all);
    ngtcp2_conn_get_scid2(quic->conn, all);
    for (size_t i = 0; i < count; i++) {
        ids_remove(&worker->ids, &all[i]);
    }
    free(all);
    ids_remove(&worker->ids, ngtcp2_conn_get_client_initial_dcid2(quic->conn));
}

void worker_over(struct quic *quic) {
    struct worker *worker = quic->owner;
    if (quic->established) {
        ngtcp2_conn_info info = quic_info(quic);
        accounts_add(&worker->accounts, &info, NULL);
    }
    for (size_t i = 0; quic->touched && i < worker->touched_count; i++) {
        if (worker->touched[i] == quic) {
            worker->touched[i] = NULL;
        }
    }
    *(quic->previous ? &quic->previous->next : &worker->first) = quic->next;
    if (quic->next) {
        quic->next->previous = quic->previous;
    }
    forget_ids(worker, quic);
    answer_drop(quic);
    quic_free(quic);
}

static void write_touched(struct worker *worker) {
    for (size_t i = 0; i < worker->touched_count; i++) {
        struct quic *quic = worker->touched[i];
        if (quic) {
            quic->touched = false;
            quic_write(quic);
        }
    }
    worker->touched_count = 0;
}

static void touch(struct worker *worker, struct quic *quic) {
    if (quic->touched) {
        return;
    }
    if (worker->touched_count == worker->touched_room) {
        worker->touched_room = worker->touched_room ? 2 * worker->touched_room : 64;
        worker->touched = realloc(worker->touched, worker->touched_room * sizeof *worker->touched);
        if (!worker->touched) {
            fail(OTHER, "no memory for another connection");
        }
    }
    quic->touched = true;
    worker->touched[worker->touched_count++] = quic;
}

// A client with another version of QUIC gets the list of versions.
static void offer_versions(struct worker *worker, const struct datagram *datagram, const ngtcp2_version_cid *asked) {
    static const uint32_t known[] = {NGTCP2_PROTO_VER_V1};
    uint8_t packet[NGTCP2_MAX_UDP_PAYLOAD_SIZE];
    ngtcp2_ssize length =
        ngtcp2_pkt_write_version_negotiation(packet, sizeof packet, (uint8_t)now(), asked->scid, asked->scidlen, asked->dcid,
                                             asked->dcidlen, known, sizeof known / sizeof *known);
    if (length > 0 && datagram->length >= NGTCP2_MAX_UDP_PAYLOAD_SIZE && !worker->port.held) {
        port_send(&worker->port, &(struct parcel){
            datagram->from, datagram->from_length, packet, (size_t)length, (size_t)length, 0,
        });
    }
}

static struct quic *welcome(struct worker *worker, const struct datagram *datagram) {
    ngtcp2_pkt_hd header;
    if (ngtcp2_accept(&header, datagram->bytes, datagram->length) != 0) {
        return NULL;  // for a connection that has ended, or not QUIC
    }
    struct quic *quic = quic_accept(worker->party, &worker->port, datagram, &header, worker);
    quic->next = worker->first;
    if (quic->next) {
        quic->next->previous = quic;
    }
    worker->first = quic;
    return quic;
}

static void take(void *of, const struct datagram *datagram) {
    struct worker *worker = of;
    ngtcp2_version_cid ids;
    int why = ngtcp2_pkt_decode_version_cid(&ids, datagram->bytes, datagram->length, ID_LENGTH);
    if (why == NGTCP2_ERR_VERSION_NEGOTIATION) {
        offer_versions(worker, datagram, &ids);
    }
    if (why != 0) {
        return;
    }
    struct quic *quic = ids_find(&worker->ids, ids.dcid, ids.dcidlen);
    quic = quic ? quic : welcome(worker, datagram);
    if (quic) {
        touch(worker, quic);
        quic_read(quic, datagram);
    }
}

static void happen(void *of, int descriptor, uint32_t events) {
    struct worker *worker = of;
    bool was_held = worker->port.held;
    if (events & EPOLLOUT && port_release(&worker->port)) {
        for (struct quic *quic = worker->first; quic; quic = quic->next) {
            touch(worker, quic);
        }
    }
    if (events & (EPOLLIN | EPOLLERR)) {
        port_receive(&worker->port, take, worker);  // an error is about a client that is gone
    }
    write_touched(worker);
    if (was_held != (bool)worker->port.held) {
        loop_watch(descriptor, worker->port.held ? EPOLLIN | EPOLLOUT : EPOLLIN, happen, worker);
    }
}

static void stop(void *of, int descriptor, uint32_t events) {
    (void)of, (void)descriptor, (void)events;
    stopping = true;
}

static void *serve(void *of) {
    struct worker *worker = of;
    loop_open();
    loop_watch(worker->wake, EPOLLIN, stop, worker);
    loop_watch(worker->port.descriptor, EPOLLIN, happen, worker);
    loop_until(over, nothing);
    while (worker->first) {
        quic_close(worker->first, NGHTTP3_H3_NO_ERROR);
        worker_over(worker->first);
    }
    return NULL;
}

void worker_start(struct worker *worker) {
    ids_prepare(&worker->ids);
    worker->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (worker->wake < 0) {
        fail(OTHER, "eventfd: %s", strerror(errno));
    }
    int error = pthread_create(&worker->thread, NULL, serve, worker);
    if (error) {
        fail(OTHER, "starting a thread: %s", strerror(error));
    }
}

void worker_stop(struct worker *worker) {
    if (eventfd_write(worker->wake, 1) != 0) {
        fail(OTHER, "waking a thread: %s", strerror(errno));
    }
    pthread_join(worker->thread, NULL);
    port_close(&worker->port);
}
