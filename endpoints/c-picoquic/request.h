// The request of the spec, which all requests are.
#ifndef REQUEST_H
#define REQUEST_H

#include "http3.h"
#include "spec.h"

// Its head.
extern struct head request;

void request_prepare(const struct spec *spec);

#endif
