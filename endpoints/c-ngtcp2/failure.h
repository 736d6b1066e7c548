// How a connection ended, as the contract's kinds.
#ifndef FAILURE_H
#define FAILURE_H

#include "contract.h"
#include "quic.h"

enum kind failure_of(const struct quic *quic, const char **why);

#endif
