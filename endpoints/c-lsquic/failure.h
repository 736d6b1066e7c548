// Why a connection was lost, in the contract's kinds.
#ifndef FAILURE_H
#define FAILURE_H

#include "client.h"

// For a connection that lsquic closed, or is about to close.
enum kind failure_of(const struct connection *connection, const char **why);
// For a connection whose packets do not reach the server.
enum kind failure_of_kernel(const struct connection *connection, const char **why);

#endif
