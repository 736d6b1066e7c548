// How ngtcp2 and nghttp3 call each other, which neither does by itself.
#ifndef WIRING_H
#define WIRING_H

#include "quic.h"

// ngtcp2's callbacks of a party.
const ngtcp2_callbacks *wiring(const struct party *party);
// Has one packet written, with what HTTP/3 has to send.
ngtcp2_ssize wiring_write_packet(ngtcp2_conn *conn, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *packet, size_t room,
                                 ngtcp2_tstamp at, void *of);
// Begins HTTP/3 on a connection; 0, or ngtcp2's word for a callback that failed.
int wiring_begin_http(struct quic *quic);

#endif
