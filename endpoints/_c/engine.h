// The client from `ready` to `done`.
#ifndef ENGINE_H
#define ENGINE_H

#include "spec.h"

void engine_run(const struct spec *spec);

#endif
