#include "port.h"

#include <errno.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"

enum { MARKS = 3, AT_ONCE = 8, JOINED = 65536 };

// A waiting parcel, with its bytes.
struct letter {
    struct parcel parcel;
    struct sockaddr_storage to;
    uint8_t bytes[];
};

static int64_t option(const struct port *port, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(port->descriptor, level, name, &value, &length) == 0 ? value : -1;
}

static bool set(const struct port *port, int level, int name, int value) {
    return setsockopt(port->descriptor, level, name, &value, sizeof value) == 0;
}

// The kernel keeps and reports twice of what is set, for its bookkeeping (socket(7)).
static void set_buffer(const struct port *port, const char *field, int name, int forced, int64_t wanted) {
    if (wanted < 0) {
        return;
    }
    set(port, SOL_SOCKET, name, (int)wanted);
    if (option(port, SOL_SOCKET, name) < 2 * wanted) {
        set(port, SOL_SOCKET, forced, (int)wanted);  // beyond the limit only with CAP_NET_ADMIN
    }
    int64_t real = option(port, SOL_SOCKET, name) / 2;
    if (real != wanted) {
        refuse("transport: cannot honour `%s` = %lld: the kernel gives %lld; net.core.%s limits it", field, (long long)wanted,
               (long long)real, name == SO_SNDBUF ? "wmem_max" : "rmem_max");
    }
}

static void set_offloads(struct port *port, const struct quic_settings *wanted) {
    bool v6 = port->local.socket.ss_family == AF_INET6;
    port->gso = wanted->gso != 0 && option(port, IPPROTO_UDP, UDP_SEGMENT) >= 0;
    if (wanted->gso == 1 && !port->gso) {
        refuse("transport: cannot honour `gso`: this kernel cannot segment UDP datagrams (Linux 4.18 can)");
    }
    if (wanted->gro != 0 && !set(port, IPPROTO_UDP, UDP_GRO, 1) && wanted->gro == 1) {
        refuse("transport: cannot honour `gro`: this kernel cannot join UDP datagrams (Linux 5.0 can)");
    }
    set(port, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVTCLASS : IP_RECVTOS, 1);
    // Probes of the path's size must not be fragmented.
    set(port, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER,
        v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE);
}

void port_open(struct port *port, const struct address *local, const struct quic_settings *wanted, bool shared) {
    *port = (struct port){.local = *local};
    struct sockaddr *name = (struct sockaddr *)&port->local.socket;
    port->descriptor = socket(name->sa_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (port->descriptor < 0) {
        fail(OTHER, "making a UDP socket: %s", strerror(errno));
    }
    set_buffer(port, "udp_send_buffer", SO_SNDBUF, SO_SNDBUFFORCE, wanted->udp_send_buffer);
    set_buffer(port, "udp_receive_buffer", SO_RCVBUF, SO_RCVBUFFORCE, wanted->udp_receive_buffer);
    set_offloads(port, wanted);
    if (shared) {
        set(port, SOL_SOCKET, SO_REUSEPORT, 1);
    }
    if (bind(port->descriptor, name, port->local.length) != 0 ||
        getsockname(port->descriptor, name, &port->local.length) != 0) {
        fail(OTHER, "binding a UDP socket to %s: %s", local->text, strerror(errno));
    }
}

static void note(struct port *port, int error) {
    if (error == ECONNREFUSED || error == EHOSTUNREACH || error == ENETUNREACH) {
        port->noted = error;
    }
}

bool port_connect(struct port *port, const struct address *peer) {
    struct sockaddr *name = (struct sockaddr *)&port->local.socket;
    if (connect(port->descriptor, (const struct sockaddr *)&peer->socket, peer->length) != 0) {
        port->noted = errno;
        return false;
    }
    return getsockname(port->descriptor, name, &port->local.length) == 0;
}

void port_report(const struct port *port, json_object *configured) {
    const int64_t send = option(port, SOL_SOCKET, SO_SNDBUF), receive = option(port, SOL_SOCKET, SO_RCVBUF);
    json_object_object_add(configured, "udp_send_buffer", json_object_new_int64(send / 2));
    json_object_object_add(configured, "udp_receive_buffer", json_object_new_int64(receive / 2));
    json_object_object_add(configured, "gso", json_object_new_boolean(port->gso));
    json_object_object_add(configured, "gro", json_object_new_boolean(option(port, IPPROTO_UDP, UDP_GRO) == 1));
}

static void add_control(struct msghdr *message, int level, int type, const void *value, size_t length) {
    struct cmsghdr *control = (struct cmsghdr *)((uint8_t *)message->msg_control + message->msg_controllen);
    *control = (struct cmsghdr){.cmsg_len = CMSG_LEN(length), .cmsg_level = level, .cmsg_type = type};
    memcpy(CMSG_DATA(control), value, length);
    message->msg_controllen += CMSG_SPACE(length);
}

// 0, or what the kernel says.
static int send_once(const struct port *port, const struct parcel *parcel, const uint8_t *bytes, size_t length) {
    struct iovec part = {(void *)bytes, length};
    _Alignas(struct cmsghdr) uint8_t room[CMSG_SPACE(sizeof(uint16_t)) + CMSG_SPACE(sizeof(int))];
    memset(room, 0, sizeof room);
    struct msghdr message = {
        .msg_name = (void *)parcel->to, .msg_namelen = parcel->to_length, .msg_iov = &part, .msg_iovlen = 1, .msg_control = room,
    };
    if (length > parcel->segment) {
        uint16_t segment = (uint16_t)parcel->segment;
        add_control(&message, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment);
    }
    if (parcel->mark) {
        int mark = parcel->mark;
        bool v6 = port->local.socket.ss_family == AF_INET6;
        add_control(&message, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_TCLASS : IP_TOS, &mark, sizeof mark);
    }
    ssize_t sent;
    do {
        sent = sendmsg(port->descriptor, &message, 0);
    } while (sent < 0 && errno == EINTR);
    return sent < 0 ? errno : 0;
}

static void hold(struct port *port, const struct parcel *parcel, size_t sent) {
    size_t left = parcel->length - sent;
    struct letter *letter = allocate(1, sizeof *letter + left);
    letter->parcel = *parcel;
    letter->parcel.length = left;
    letter->parcel.bytes = memcpy(letter->bytes, parcel->bytes + sent, left);
    if (parcel->to) {
        memcpy(&letter->to, parcel->to, parcel->to_length);
        letter->parcel.to = (struct sockaddr *)&letter->to;
    }
    port->held = letter;
}

void port_send(struct port *port, const struct parcel *parcel) {
    for (size_t sent = 0; sent < parcel->length;) {
        size_t left = parcel->length - sent;
        size_t part = port->gso || left < parcel->segment ? left : parcel->segment;
        int error = send_once(port, parcel, parcel->bytes + sent, part);
        if (error == EAGAIN || error == ENOBUFS) {
            hold(port, parcel, sent);
            return;
        }
        if ((error == EIO || error == EINVAL) && part > parcel->segment) {
            port->gso = false;  // the network device cannot
            continue;
        }
        note(port, error);
        sent += part;
    }
}

bool port_release(struct port *port) {
    struct letter *letter = port->held;
    if (letter) {
        port->held = NULL;
        port_send(port, &letter->parcel);
        free(letter);
    }
    return !port->held;
}

// A received buffer, perhaps of several datagrams that the kernel joined.
static void open_joined(const struct msghdr *message, size_t length, void (*take)(void *, const struct datagram *), void *of) {
    int segment = (int)length;
    uint8_t mark = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c; c = CMSG_NXTHDR((struct msghdr *)message, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            memcpy(&segment, CMSG_DATA(c), sizeof segment);
        } else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
                   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
            mark = *CMSG_DATA(c) & MARKS;
        }
    }
    struct datagram datagram = {.from = message->msg_name, .from_length = message->msg_namelen, .mark = mark};
    const uint8_t *bytes = message->msg_iov->iov_base;
    for (size_t at = 0; at < length; at += datagram.length) {
        datagram.bytes = bytes + at;
        datagram.length = length - at < (size_t)segment ? length - at : (size_t)segment;
        take(of, &datagram);
    }
}

void port_receive(struct port *port, void (*take)(void *of, const struct datagram *datagram), void *of) {
    // One buffer per thread: received bytes are used up before the next call.
    static _Thread_local uint8_t *buffers;
    static _Thread_local struct sockaddr_storage names[AT_ONCE];
    static _Thread_local _Alignas(struct cmsghdr) uint8_t controls[AT_ONCE][128];
    buffers = buffers ? buffers : allocate(AT_ONCE, JOINED);
    struct mmsghdr messages[AT_ONCE];
    struct iovec parts[AT_ONCE];
    for (int i = 0; i < AT_ONCE; i++) {
        parts[i] = (struct iovec){buffers + (size_t)i * JOINED, JOINED};
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &names[i], .msg_namelen = sizeof names[i], .msg_iov = &parts[i], .msg_iovlen = 1,
            .msg_control = controls[i], .msg_controllen = sizeof controls[i],
        };
    }
    int count = recvmmsg(port->descriptor, messages, AT_ONCE, MSG_DONTWAIT, NULL);
    for (int i = 0; i < count; i++) {
        open_joined(&messages[i].msg_hdr, messages[i].msg_len, take, of);
    }
    if (count < 0) {
        note(port, errno);
    }
}

void port_close(struct port *port) {
    free(port->held);
    port->held = NULL;
    close(port->descriptor);
}
