#include "sockets.h"

#include <errno.h>
#include <netinet/udp.h>
#include <picosocks.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"
#include "loop.h"

static struct stack_settings settings;
static bool segments;
static struct udp_socket sockets[2];
static int socket_count;

void sockets_prepare(const struct stack_settings *of) {
    settings = *of;
}

bool sockets_segment(void) {
    return segments;
}

static int64_t option(int descriptor, int level, int name) {
    int value = -1;
    socklen_t length = sizeof value;
    return getsockopt(descriptor, level, name, &value, &length) == 0 ? value : -1;
}

static void set_buffer(int descriptor, int name, const char *field, int64_t wanted) {
    int size = (int)wanted;
    // The kernel doubles what it grants, for its bookkeeping.
    if (wanted >= 0 && (setsockopt(descriptor, SOL_SOCKET, name, &size, sizeof size) != 0 ||
                        option(descriptor, SOL_SOCKET, name) != 2 * wanted)) {
        refuse("transport: cannot honour `%s` = %lld: the kernel grants %lld", field, (long long)wanted,
               (long long)option(descriptor, SOL_SOCKET, name) / 2);
    }
}

struct udp_socket *socket_bind(const struct sockaddr *local, socklen_t length) {
    int family = local->sa_family, ignored;
    for (int i = 0; i < socket_count; i++) {
        if (sockets[i].family == family) {
            return &sockets[i];
        }
    }
    int descriptor = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_UDP);
    if (descriptor < 0 || bind(descriptor, local, length) != 0) {
        fail(OTHER, "binding a UDP socket: %s", strerror(errno));
    }
    if (picoquic_socket_set_pkt_info(descriptor, family) != 0 ||
        picoquic_socket_set_ecn_options(descriptor, family, &ignored, &ignored) != 0 ||
        picoquic_socket_set_pmtud_options(descriptor, family) != 0) {
        fail(OTHER, "setting the options of a UDP socket: %s", strerror(errno));
    }
    set_buffer(descriptor, SO_SNDBUF, "udp_send_buffer", settings.udp_send_buffer);
    set_buffer(descriptor, SO_RCVBUF, "udp_receive_buffer", settings.udp_receive_buffer);
    segments = settings.gso != 0 && option(descriptor, IPPROTO_UDP, UDP_SEGMENT) >= 0;
    if (settings.gso == 1 && !segments) {
        refuse("transport: cannot honour `gso` = true: the kernel cuts nothing into packets (UDP_SEGMENT)");
    }
    struct sockaddr_storage bound;
    socklen_t room = sizeof bound;
    getsockname(descriptor, (struct sockaddr *)&bound, &room);
    in_port_t port = family == AF_INET6 ? ((struct sockaddr_in6 *)&bound)->sin6_port : ((struct sockaddr_in *)&bound)->sin_port;
    sockets[socket_count] = (struct udp_socket){descriptor, family, port};
    return &sockets[socket_count++];
}

int socket_to(const struct sockaddr_storage *to) {
    return sockets[socket_count > 1 && sockets[1].family == to->ss_family].descriptor;
}

json_object *sockets_configured(void) {
    json_object *facts = json_object_new_object();
    int descriptor = sockets[0].descriptor;
    int payload = sockets[0].family == AF_INET6 ? PICOQUIC_INITIAL_MTU_IPV6 : PICOQUIC_INITIAL_MTU_IPV4;
    json_object_object_add(facts, "udp_send_buffer", json_object_new_int64(option(descriptor, SOL_SOCKET, SO_SNDBUF) / 2));
    json_object_object_add(facts, "udp_receive_buffer", json_object_new_int64(option(descriptor, SOL_SOCKET, SO_RCVBUF) / 2));
    json_object_object_add(facts, "gso", json_object_new_boolean(segments));
    json_object_object_add(facts, "gro", json_object_new_boolean(option(descriptor, IPPROTO_UDP, UDP_GRO) == 1));
    json_object_object_add(facts, "initial_udp_payload", json_object_new_int(payload));
    return facts;
}

void sockets_close(void) {
    for (int i = 0; i < socket_count; i++) {
        loop_watch(sockets[i].descriptor, 0, NULL, NULL);
        close(sockets[i].descriptor);
    }
}
