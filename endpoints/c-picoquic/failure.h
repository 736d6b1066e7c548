// Why a connection was lost, in the contract's kinds.
#ifndef FAILURE_H
#define FAILURE_H

#include "contract.h"
#include "quic.h"

enum kind failure_of(picoquic_cnx_t *connection, picoquic_call_back_event_t event, bool ready, const char **why);

#endif
