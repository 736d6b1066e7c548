// lsquic on the engine's loop: its engine, its settings, its clock.
#ifndef QUIC_H
#define QUIC_H

#include <json-c/json.h>
#include <lsquic.h>
#include <stdbool.h>

#include "spec.h"

extern lsquic_engine_t *quic;

// Makes the engine. `tls` is what every connection begins with, `calls` is told what happens.
void quic_prepare(bool server, const struct quic_settings *wanted, struct ssl_ctx_st *tls, const struct lsquic_stream_if *calls);
// There is something to do for lsquic: it is done when the loop has told what else is known by now.
void quic_due(void);
// Lets lsquic do what is due by now.
void quic_process(void);
// Adds the settings in force.
void quic_report(json_object *configured);
// Sends the last words; the engine is gone, and all connections with it.
void quic_finish(void);

#endif
