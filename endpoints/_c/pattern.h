// What every generated body repeats: the bytes 0 to 250, as the contract has it.
#ifndef PATTERN_H
#define PATTERN_H

#include <stdint.h>
#include <sys/types.h>

// Once, before there are other threads.
void pattern_prepare(void);
// The pattern from `offset` of a body on, of which `left` bytes are wanted; `length`: how many of them there are at once.
// They stay where they are.
const uint8_t *pattern_at(uint64_t offset, uint64_t left, size_t *length);
// Copies as much of it.
void pattern_fill(uint64_t offset, uint8_t *to, size_t length);

#endif
