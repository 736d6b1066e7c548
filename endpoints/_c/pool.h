// The lanes, over connections that are kept or that each request opens; each carries one request at a time.
#ifndef POOL_H
#define POOL_H

#include "driver.h"

// Starts with no open connection.
void pool_begin(const struct spec *spec);
// Sends the check request, on a connection of its own: the only one whose body is hashed. Fails if it fails.
void pool_check(void);
// Makes the lanes, and opens kept connections, each by the request of the spec.
void pool_open(void);
// Another lane, if every request opens its connection; false: no lane is available.
bool pool_grow(void);
// Sends the request over a lane.
void pool_send(struct exchange *lane, moment intended);
// Keeps the first failure, for the log.
void pool_complain(enum kind kind, const char *message);
// Numbers connections from 0 again.
void pool_renumber(void);
// Closes all connections, and logs the first failure.
void pool_close(void);

#endif
