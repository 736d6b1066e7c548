#include "histogram.h"

#include <endian.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

// Three digits need 2000 steps in the upper half of each power of two: 2048 steps in all, half of them new in each power.
enum { HALF_BITS = 10, HALF = 1 << HALF_BITS, STEPS = 2 * HALF };
static const uint64_t LONGEST = 24ull * 3600 * 1000000000;  // a longer time counts as this long
enum { POWERS = 47 - HALF_BITS };                            // 2^47 ns are above that
enum { COUNTS = (POWERS + 1) * HALF };

static uint64_t place(uint64_t value) {
    uint64_t power = 64 - (uint64_t)__builtin_clzll(value | (STEPS - 1)) - (HALF_BITS + 1);
    return ((power + 1) << HALF_BITS) + (value >> power) - HALF;
}

void histogram_prepare(struct histogram *h) {
    h->counts = malloc(COUNTS * sizeof *h->counts);
    if (!h->counts) {
        fail(OTHER, "no memory for a histogram");
    }
    memset(h->counts, 1, COUNTS * sizeof *h->counts);  // touched: no page faults in the window
    memset(h->counts, 0, COUNTS * sizeof *h->counts);
    h->min = UINT64_MAX;
}

void histogram_add(struct histogram *h, int64_t nanoseconds) {
    uint64_t value = nanoseconds > 0 ? (uint64_t)nanoseconds : 0;
    h->counts[place(value < LONGEST ? value : LONGEST)]++;
    h->total++;
    h->sum += value;
    h->min = value < h->min ? value : h->min;
    h->max = value > h->max ? value : h->max;
}

// ZigZag LEB128 of up to nine bytes; the ninth byte has eight bits.
static uint8_t *put_number(uint8_t *to, int64_t number) {
    uint64_t left = ((uint64_t)number << 1) ^ (uint64_t)(number >> 63);
    for (int i = 0; i < 8 && left >= 0x80; i++) {
        *to++ = (uint8_t)(left | 0x80);
        left >>= 7;
    }
    *to++ = (uint8_t)left;
    return to;
}

static uint8_t *put_counts(uint8_t *to, const struct histogram *h) {
    uint64_t end = place(h->max < LONGEST ? h->max : LONGEST) + 1;
    for (uint64_t i = 0; i < end;) {
        uint64_t zeros = 0;
        while (i + zeros < end && h->counts[i + zeros] == 0) {
            zeros++;
        }
        // A single zero is a count; a run of them is the negative of its length.
        to = put_number(to, zeros > 1 ? -(int64_t)zeros : zeros ? 0 : (int64_t)h->counts[i]);
        i += zeros ? zeros : 1;
    }
    return to;
}

static json_object *encoded(const struct histogram *h) {
    struct {
        uint32_t cookie, length, offset, digits;
        uint64_t lowest, highest, ratio;
    } header = {htobe32(0x1c849313), 0, 0, htobe32(3), htobe64(1), htobe64(LONGEST), 0};
    const double one = 1;
    memcpy(&header.ratio, &one, sizeof one);
    header.ratio = htobe64(header.ratio);
    _Static_assert(sizeof header == 40, "the header has no gaps");

    uint8_t *bytes = allocate(1, sizeof header + 9 * COUNTS);
    size_t length = (size_t)(put_counts(bytes + sizeof header, h) - bytes);
    header.length = htobe32((uint32_t)(length - sizeof header));
    memcpy(bytes, &header, sizeof header);
    char *text = allocate(1, 4 * (length / 3 + 1) + 1);
    EVP_EncodeBlock((unsigned char *)text, bytes, (int)length);
    json_object *object = json_object_new_string(text);
    free(text);
    free(bytes);
    return object;
}

json_object *histogram_encode(const struct histogram *h) {
    json_object *object = json_object_new_object();
    json_object_object_add(object, "v2", h->total ? encoded(h) : json_object_new_string(""));
    json_object_object_add(object, "count", json_object_new_uint64(h->total));
    json_object_object_add(object, "min_ns", json_object_new_uint64(h->total ? h->min : 0));
    json_object_object_add(object, "max_ns", json_object_new_uint64(h->max));
    json_object_object_add(object, "sum_ns", json_object_new_uint64(h->sum));
    return object;
}
