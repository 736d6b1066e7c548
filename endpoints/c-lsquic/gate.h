// Where packets come in and go out: a UDP socket of the engine's loop.
#ifndef GATE_H
#define GATE_H

#include <lsquic.h>

#include "alarm.h"
#include "port.h"

struct gate {
    struct port port;
    struct alarm trouble;
    // Called outside of lsquic's calls if no packet reaches the peer; the port has noted the reason. May be NULL.
    void (*broken)(void *of);
    void *of;
};

// Opens it at a local address, and listens; `broken` and `of` are set.
void gate_open(struct gate *gate, const struct address *local, const struct quic_settings *wanted);
// lsquic sends packets, which go to the gates that its connections are known by.
int gate_send(void *of, const struct lsquic_out_spec *packets, unsigned count);
void gate_close(struct gate *gate);

#endif
