#include "gate.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "loop.h"
#include "quic.h"

// Segments that the kernel takes in one call (`UDP_MAX_SEGMENTS`).
enum { MOST_SEGMENTS = 64 };

static void take(void *of, const struct datagram *datagram) {
    struct gate *gate = of;
    lsquic_engine_packet_in(quic, datagram->bytes, datagram->length, (struct sockaddr *)&gate->port.local.socket, datagram->from,
                            gate, datagram->mark);
}

static void tell_trouble(void *of) {
    struct gate *gate = of;
    if (gate->broken) {
        gate->broken(gate->of);
    }
}

static void happen(void *of, int descriptor, uint32_t events) {
    struct gate *gate = of;
    if (events & EPOLLOUT && port_release(&gate->port)) {
        loop_watch(descriptor, EPOLLIN, happen, gate);
        lsquic_engine_send_unsent_packets(quic);
    }
    if (events & ~(uint32_t)EPOLLOUT) {
        port_receive(&gate->port, take, gate);
    }
    if (gate->port.noted) {
        tell_trouble(gate);
    }
    quic_process();
}

void gate_open(struct gate *gate, const struct address *local, const struct quic_settings *wanted) {
    port_open(&gate->port, local, wanted, false);
    gate->trouble = (struct alarm){.act = tell_trouble, .of = gate};
    loop_watch(gate->port.descriptor, EPOLLIN, happen, gate);
}

static size_t length_of(const struct lsquic_out_spec *packet) {
    size_t length = 0;
    for (size_t i = 0; i < packet->iovlen; i++) {
        length += packet->iov[i].iov_len;
    }
    return length;
}

static socklen_t room_of(const struct sockaddr *name) {
    return name->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
}

static bool go_together(const struct lsquic_out_spec *a, const struct lsquic_out_spec *b) {
    return a->peer_ctx == b->peer_ctx && a->ecn == b->ecn &&
           (a->dest_sa == b->dest_sa || memcmp(a->dest_sa, b->dest_sa, room_of(a->dest_sa)) == 0);
}

static void append(struct parcel *parcel, uint8_t *bytes, const struct lsquic_out_spec *packet) {
    for (size_t i = 0; i < packet->iovlen; i++) {
        memcpy(bytes + parcel->length, packet->iov[i].iov_base, packet->iov[i].iov_len);
        parcel->length += packet->iov[i].iov_len;
    }
}

// Collects packets for one call: of one size, to one peer, the last one perhaps shorter. Returns their number.
static unsigned put_together(struct parcel *parcel, uint8_t *bytes, const struct lsquic_out_spec *packets, unsigned count) {
    unsigned together = 0;
    size_t length = length_of(packets);
    parcel->segment = length;
    parcel->mark = (uint8_t)packets->ecn;
    do {
        append(parcel, bytes, packets + together++);
        if (length < parcel->segment || together == count || together == MOST_SEGMENTS ||
            !go_together(packets, packets + together)) {
            break;
        }
        length = length_of(packets + together);
    } while (length <= parcel->segment && parcel->length + length <= LARGEST);
    return together;
}

int gate_send(void *of, const struct lsquic_out_spec *packets, unsigned count) {
    static uint8_t bytes[LARGEST];
    unsigned sent = 0;
    (void)of;
    while (sent < count) {
        struct gate *gate = packets[sent].peer_ctx;
        if (gate->port.held) {
            errno = EAGAIN;
            return sent ? (int)sent : -1;
        }
        struct parcel parcel = {.bytes = bytes};
        if (!gate->broken) {
            // The socket of a server has many peers.
            parcel.to = packets[sent].dest_sa;
            parcel.to_length = room_of(parcel.to);
        }
        sent += put_together(&parcel, bytes, packets + sent, count - sent);
        port_send(&gate->port, &parcel);
        if (gate->port.held) {
            loop_watch(gate->port.descriptor, EPOLLIN | EPOLLOUT, happen, gate);
        }
        if (gate->port.noted && gate->broken) {
            alarm_set(&gate->trouble, now());
        }
    }
    return (int)count;
}

void gate_close(struct gate *gate) {
    alarm_cancel(&gate->trouble);
    loop_watch(gate->port.descriptor, 0, NULL, NULL);
    port_close(&gate->port);
}
