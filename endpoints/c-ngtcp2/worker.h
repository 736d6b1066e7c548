// A thread that serves: a socket, a loop, and the connections whose packets come to that socket.
#ifndef WORKER_H
#define WORKER_H

#include <pthread.h>

#include "accounts.h"
#include "answer.h"
#include "ids.h"

struct worker {
    struct desk desk;  // the first: the owner of a connection is a desk
    const struct party *party;
    struct port port;
    struct ids ids;
    struct quic *first;
    // Connections that have something to send, perhaps.
    struct quic **touched;
    size_t touched_count, touched_room;
    struct accounts accounts;
    int wake;  // the word to stop came
    pthread_t thread;
};

// The callbacks of a server's party.
void worker_add_id(struct quic *quic, const ngtcp2_cid *id);
void worker_remove_id(struct quic *quic, const ngtcp2_cid *id);
void worker_over(struct quic *quic);

// Begins to serve at the worker's port.
void worker_start(struct worker *worker);
// Ends it, with a goodbye to every client.
void worker_stop(struct worker *worker);

#endif
