#include "ids.h"

#include <stdlib.h>
#include <string.h>

#include "contract.h"

enum { BUCKETS = 1 << 14 };

struct id {
    ngtcp2_cid id;
    struct quic *quic;
    struct id *next;
};

// FNV-1a; a peer chooses only its first one, and gains nothing but a chain of its own.
static size_t bucket_of(const uint8_t *bytes, size_t length) {
    uint64_t hash = 0xcbf29ce484222325;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ bytes[i]) * 0x100000001b3;
    }
    return (hash ^ hash >> 32) % BUCKETS;
}

// Where the one with these bytes hangs, or would hang.
static struct id **place(const struct ids *ids, const uint8_t *bytes, size_t length) {
    struct id **at = &ids->buckets[bucket_of(bytes, length)];
    while (*at && ((*at)->id.datalen != length || memcmp((*at)->id.data, bytes, length) != 0)) {
        at = &(*at)->next;
    }
    return at;
}

void ids_prepare(struct ids *ids) {
    ids->buckets = allocate(BUCKETS, sizeof *ids->buckets);
}

void ids_add(struct ids *ids, const ngtcp2_cid *id, struct quic *quic) {
    struct id **at = place(ids, id->data, id->datalen);
    if (!*at) {
        *at = allocate(1, sizeof **at);
        (*at)->id = *id;
    }
    (*at)->quic = quic;
}

void ids_remove(struct ids *ids, const ngtcp2_cid *id) {
    struct id **at = place(ids, id->data, id->datalen), *gone = *at;
    if (gone) {
        *at = gone->next;
        free(gone);
    }
}

struct quic *ids_find(const struct ids *ids, const uint8_t *bytes, size_t length) {
    struct id *found = *place(ids, bytes, length);
    return found ? found->quic : NULL;
}
