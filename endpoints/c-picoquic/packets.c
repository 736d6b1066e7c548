// Packets in and out, and the moment of the next one.
#include "packets.h"

#include <errno.h>
#include <picosocks.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "alarm.h"
#include "contract.h"
#include "loop.h"
#include "sockets.h"

enum {
    MOST_READ = 64,      // packets, before others have their turn
    MOST_SENT = 0xffff,  // bytes in one call, which the kernel cuts into packets
    // The first byte of Initial packets, in which handshakes begin, of both versions of QUIC (RFC 9000, section 17.2; RFC 9369,
    // section 3.2): the long form, and a type below 2.
    FORM_AND_TYPE = 0xa0,
    LONG_AND_INITIAL = 0x80,
};

static struct stack_settings settings;
static struct alarm wake;
// Connections whose goodbye is yet to be sent.
static picoquic_cnx_t **leaving;
static size_t leaving_count, leaving_room;

static void wake_up(void *of) {
    (void)of;
    quic_send();
}

void packets_prepare(const struct stack_settings *of) {
    settings = *of;
    wake = (struct alarm){.act = wake_up};
    sockets_prepare(of);
}

static void take(struct udp_socket *socket, uint8_t *bytes, int length, struct sockaddr_storage *from, struct sockaddr_storage *to,
                 int interface, unsigned char ecn, uint64_t at) {
    if (to->ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)to)->sin6_port = socket->port;
    } else {
        ((struct sockaddr_in *)to)->sin_port = socket->port;
    }
    if (settings.before_handshake && (bytes[0] & FORM_AND_TYPE) == LONG_AND_INITIAL) {
        settings.before_handshake();
    }
    picoquic_incoming_packet(quic, bytes, (size_t)length, (struct sockaddr *)from, (struct sockaddr *)to, interface, ecn, at);
}

static void receive(void *of, int descriptor, uint32_t events) {
    static uint8_t bytes[PICOQUIC_MAX_PACKET_SIZE];
    (void)events;
    uint64_t at = picoquic_current_time();
    for (int i = 0; i < MOST_READ; i++) {
        struct sockaddr_storage from, to;
        int interface;
        unsigned char ecn = 0;
        int length = picoquic_recvmsg(descriptor, &from, &to, &interface, &ecn, bytes, sizeof bytes);
        if (length <= 0) {
            break;
        }
        take(of, bytes, length, &from, &to, interface, ecn, at);
    }
    quic_due();
}

uint16_t quic_bind(const struct sockaddr *local, socklen_t length) {
    struct udp_socket *bound = socket_bind(local, length);
    loop_watch(bound->descriptor, EPOLLIN, receive, bound);
    return ntohs(bound->port);
}

void quic_due(void) {
    alarm_set(&wake, now());
}

// Deletes what has said goodbye.
static void forget(void) {
    size_t left = 0;
    for (size_t i = 0; i < leaving_count; i++) {
        if (picoquic_get_cnx_state(leaving[i]) == picoquic_state_disconnecting) {
            leaving[left++] = leaving[i];
        } else {
            picoquic_delete_cnx(leaving[i]);
        }
    }
    leaving_count = left;
}

void quic_send(void) {
    static uint8_t bytes[MOST_SENT];
    struct sockaddr_storage to = {0}, from = {0};
    picoquic_cnx_t *connection;
    size_t length = 0, size = 0;
    int interface = 0, reason;
    bool segments = sockets_segment();
    for (;;) {
        size_t room = segments ? sizeof bytes : PICOQUIC_MAX_PACKET_SIZE;
        if (picoquic_prepare_next_packet_ex(quic, picoquic_current_time(), bytes, room, &length, &to, &from, &interface, NULL,
                                            &connection, segments ? &size : NULL) != 0 || !length) {
            break;
        }
        int sent = picoquic_sendmsg(socket_to(&to), (struct sockaddr *)&to, (struct sockaddr *)&from, interface, (char *)bytes,
                                    (int)length, segments ? (int)size : 0, &reason);
        // A full buffer is a loss like any other.
        if (sent <= 0 && connection && (reason == ENETUNREACH || reason == EHOSTUNREACH) && settings.unreachable) {
            settings.unreachable(connection, reason);
        }
    }
    forget();
    int64_t delay = picoquic_get_next_wake_delay(quic, picoquic_current_time(), INT64_MAX / 2000);
    alarm_set(&wake, now() + (delay > 0 ? delay * 1000 : 0));
}

void quic_close(picoquic_cnx_t *connection, uint64_t code) {
    picoquic_set_callback(connection, NULL, NULL);
    if (picoquic_get_cnx_state(connection) < picoquic_state_disconnecting) {
        picoquic_close(connection, code);
    }
    // A server's is deleted by picoquic, when it was silent for a while.
    if (picoquic_is_client(connection)) {
        if (leaving_count == leaving_room) {
            leaving_room = leaving_room ? 2 * leaving_room : 64;
            leaving = realloc(leaving, leaving_room * sizeof *leaving);
            if (!leaving) {
                fail(OTHER, "no memory for %zu connections", leaving_room);
            }
        }
        leaving[leaving_count++] = connection;
    }
    quic_due();
}

void packets_finish(void) {
    quic_send();
    alarm_cancel(&wake);
    sockets_close();
    free(leaving);
}
