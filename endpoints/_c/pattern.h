// The pattern of every generated body: the bytes 0 to 250, as the contract defines.
#ifndef PATTERN_H
#define PATTERN_H

#include <stdint.h>
#include <sys/types.h>

// Call once, before other threads start.
void pattern_prepare(void);
// The pattern from `offset` of a body on, at most `left` bytes; `length`: the number of bytes in one piece.
// The bytes stay in place.
const uint8_t *pattern_at(uint64_t offset, uint64_t left, size_t *length);
// Copies as much of it.
void pattern_fill(uint64_t offset, uint8_t *to, size_t length);

#endif
