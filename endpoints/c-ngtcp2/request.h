// Requests of a client, from the stream to the last byte of the response.
#ifndef REQUEST_H
#define REQUEST_H

#include "line.h"

// nghttp3's callbacks for it.
extern const nghttp3_callbacks REQUEST;

void request_prepare(const struct spec *spec);
// Hands over waiting requests, as far as the server allows streams.
void request_send_waiting(struct line *line);

#endif
