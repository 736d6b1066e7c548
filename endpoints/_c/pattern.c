#include "pattern.h"

#include <string.h>

enum { PERIOD = 251, PIECE = PERIOD * 256 };

static uint8_t pattern[PERIOD + PIECE];

void pattern_prepare(void) {
    for (size_t i = 0; i < sizeof pattern; i++) {
        pattern[i] = (uint8_t)(i % PERIOD);
    }
}

const uint8_t *pattern_at(uint64_t offset, uint64_t left, size_t *length) {
    *length = left < PIECE ? (size_t)left : PIECE;
    return pattern + offset % PERIOD;
}

void pattern_fill(uint64_t offset, uint8_t *to, size_t length) {
    for (size_t part; length; offset += part, to += part, length -= part) {
        const uint8_t *bytes = pattern_at(offset, length, &part);
        memcpy(to, bytes, part);
    }
}
