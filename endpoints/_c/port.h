// A UDP socket: its settings, datagrams joined and segmented by the kernel, congestion marks.
#ifndef PORT_H
#define PORT_H

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

#include "spec.h"

// The largest that is handed to the kernel at once.
enum { LARGEST = 65507 };

struct port {
    int descriptor;
    struct address local;
    bool gso;  // the kernel segments; false after it refused to
    // Parcels that the kernel has not accepted yet; NULL: none.
    struct letter *held;
    // The ICMP error for a connected socket: the port is closed, or no route exists. 0: none.
    int noted;
};

// Bytes for a peer: datagrams of `segment` bytes each, the last one perhaps shorter.
struct parcel {
    const struct sockaddr *to;  // NULL: the socket is connected
    socklen_t to_length;
    const uint8_t *bytes;
    size_t length, segment;
    uint8_t mark;  // ECN
};

// Bytes from a peer in one datagram.
struct datagram {
    struct sockaddr *from;
    socklen_t from_length;
    const uint8_t *bytes;
    size_t length;
    uint8_t mark;
};

// Opens it at a local address; `shared`: one of several sockets there. Refuses settings that the kernel does not grant.
void port_open(struct port *port, const struct address *local, const struct quic_settings *wanted, bool shared);
// Connects to the only peer. Returns whether a route exists; otherwise notes the error.
bool port_connect(struct port *port, const struct address *peer);
// The active settings.
void port_report(const struct port *port, json_object *configured);
// Sends, or keeps the parcel if the socket is full. Then send nothing more until `port_release` allows it. An error is
// a lost packet, and QUIC sends again.
void port_send(struct port *port, const struct parcel *parcel);
// Sends the kept parcels. Returns whether the socket is free again.
bool port_release(struct port *port);
// Hands over the received datagrams.
void port_receive(struct port *port, void (*take)(void *of, const struct datagram *datagram), void *of);
void port_close(struct port *port);

#endif
