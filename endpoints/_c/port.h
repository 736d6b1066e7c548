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
    // What the kernel would not take yet; NULL: nothing.
    struct letter *held;
    // What an ICMP message said of the peer of a connected socket: nobody listens there, or no way leads there. 0: nothing.
    int noted;
};

// What goes to a peer: datagrams of `segment` bytes each, the last one perhaps shorter.
struct parcel {
    const struct sockaddr *to;  // NULL: the socket is connected
    socklen_t to_length;
    const uint8_t *bytes;
    size_t length, segment;
    uint8_t mark;  // ECN
};

// What came from a peer in one datagram.
struct datagram {
    struct sockaddr *from;
    socklen_t from_length;
    const uint8_t *bytes;
    size_t length;
    uint8_t mark;
};

// Opens it at a local address; `shared`: one of several sockets there. Refuses settings that the kernel does not grant.
void port_open(struct port *port, const struct address *local, const struct quic_settings *wanted, bool shared);
// Connects it to the only peer; whether a way leads there, else that is noted.
bool port_connect(struct port *port, const struct address *peer);
// What is in force.
void port_report(const struct port *port, json_object *configured);
// Sends, or keeps it where the socket is full: then nothing more is to be sent until `port_release` says so. An error is
// a lost packet, and QUIC sends again.
void port_send(struct port *port, const struct parcel *parcel);
// Sends what was kept; whether the socket is free again.
bool port_release(struct port *port);
// Hands over what came.
void port_receive(struct port *port, void (*take)(void *of, const struct datagram *datagram), void *of);
void port_close(struct port *port);

#endif
