// picoquic on the engine's loop: its context, the sockets, packets in and out, its clock.
#ifndef QUIC_H
#define QUIC_H

#include <json-c/json.h>
#include <picoquic.h>
#include <stdbool.h>
#include <stdint.h>

// The settings of either side; NULL and negative values leave the choice to picoquic.
struct stack_settings {
    const char *certificate, *key, *trust_anchor, *key_log, *qlog_dir, *congestion;
    bool verify, keeps_tickets;
    int gso;
    int64_t udp_send_buffer, udp_receive_buffer;
    // Called before each packet is read in which a handshake may begin; NULL: nothing.
    void (*before_handshake)(void);
    // No packet can be sent to the peer, for this reason of the kernel's.
    void (*unreachable)(picoquic_cnx_t *connection, int reason);
};

extern picoquic_quic_t *quic;

// Makes the context. `callback` gets the connections that peers open, with `of`.
void quic_prepare(const struct stack_settings *settings, picoquic_stream_data_cb_fn callback, void *of);
// A socket for each family of addresses, bound to `local`, or to whatever is free where that has no port. The port.
uint16_t quic_bind(const struct sockaddr *local, socklen_t length);
// Marks pending packets: they are sent when the loop has handled its other events.
void quic_due(void);
// Sends all that may be sent now.
void quic_send(void);
// Says goodbye with this code. Afterwards no call about the connection follows, and it must not be used.
void quic_close(picoquic_cnx_t *connection, uint64_t code);
// The active settings; a new reference. `client`: the side that grants the window of a request stream.
json_object *quic_configured(bool client);
// Adds cipher and group, which a connection proves: it had one of each to choose from.
void quic_configured_tls(json_object *facts);
// Ends logs; the context is gone.
void quic_finish(void);

#endif
