// lsquic on the engine's loop: its engine, its settings, its clock.
#ifndef QUIC_H
#define QUIC_H

#include <json-c/json.h>
#include <lsquic.h>
#include <stdbool.h>

#include "spec.h"

extern lsquic_engine_t *quic;

// Makes the engine. Every connection begins with `tls`; `calls` gets the events.
void quic_prepare(bool server, const struct quic_settings *wanted, struct ssl_ctx_st *tls, const struct lsquic_stream_if *calls);
// lsquic has work to do: it runs when the loop has handled its other events.
void quic_due(void);
// Lets lsquic do its due work.
void quic_process(void);
// Adds the active settings.
void quic_report(json_object *configured);
// Sends the last packets, and frees the engine with all connections.
void quic_finish(void);

#endif
