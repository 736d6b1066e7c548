// The head of the spec's request, which all requests have.
#ifndef REQUEST_H
#define REQUEST_H

#include <lsquic.h>
#include <stdbool.h>

#include "spec.h"

void request_prepare(const struct spec *spec);
// Sends it at the beginning of a stream; false: lsquic does not take it.
bool request_send(lsquic_stream_t *stream);

#endif
