// The connection IDs of a server's thread: which connection a packet is for.
#ifndef IDS_H
#define IDS_H

#include <ngtcp2/ngtcp2.h>

struct quic;

struct ids {
    struct id **buckets;
};

void ids_prepare(struct ids *ids);
void ids_add(struct ids *ids, const ngtcp2_cid *id, struct quic *quic);
void ids_remove(struct ids *ids, const ngtcp2_cid *id);
// NULL: no connection has it.
struct quic *ids_find(const struct ids *ids, const uint8_t *bytes, size_t length);

#endif
