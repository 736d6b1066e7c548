// The client from `ready` to `done`.
#ifndef ENGINE_H
#define ENGINE_H

#include "spec.h"

// Raises the limit of descriptors as far as the kernel allows: each connection takes a few.
void allow_descriptors(void);
void engine_run(const struct spec *spec);

#endif
