// UDP sockets: one for each family of addresses, which all connections share.
#ifndef SOCKETS_H
#define SOCKETS_H

#include <netinet/in.h>

#include "quic.h"

struct udp_socket {
    int descriptor, family;
    in_port_t port;
};

void sockets_prepare(const struct stack_settings *settings);
// The socket of this family, bound to `local` if new.
struct udp_socket *socket_bind(const struct sockaddr *local, socklen_t length);
// The socket that reaches this address.
int socket_to(const struct sockaddr_storage *to);
// Whether the kernel cuts the bytes of one call into packets.
bool sockets_segment(void);
// The active settings, read back from the kernel.
json_object *sockets_configured(void);
void sockets_close(void);

#endif
