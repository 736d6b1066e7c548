// Why a connection was lost, in the contract's kinds.
#ifndef FAILURE_H
#define FAILURE_H

#include "client.h"

// Of one that lsquic closed, or is about to.
enum kind failure_of(const struct connection *connection, const char **why);
// Of one whose packets do not reach the server.
enum kind failure_of_kernel(const struct connection *connection, const char **why);

#endif
