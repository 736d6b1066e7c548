// An HDR histogram of nanoseconds with three significant digits, exact extremes and sum.
#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <json-c/json.h>
#include <stdint.h>

struct histogram {
    uint64_t *counts, total, min, max, sum;
};

void histogram_prepare(struct histogram *histogram);
void histogram_add(struct histogram *histogram, int64_t nanoseconds);
// In the contract's form: HdrHistogram's V2 encoding in base64, count, extremes, sum.
json_object *histogram_encode(const struct histogram *histogram);

#endif
