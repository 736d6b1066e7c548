#include "record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "histogram.h"

enum { CHUNK = 1 << 14, MOST_EXPECTED = 500000 };

static bool histograms;
static struct record **chunks;
static uint64_t chunk_count, kept;
static uint64_t succeeded, failed[KINDS], handshakes[HANDSHAKES], connections, bytes_in, bytes_out;

// The recorded times, in the order of the results file.
enum { RESPONSE, SERVICE, LAG, HANDSHAKE, FIRST_BYTE, FAILURE, DISTRIBUTIONS };
static const char *const DISTRIBUTION_WORDS[DISTRIBUTIONS] = {"response", "service", "lag", "handshake", "first_byte", "failure"};
static struct histogram distributions[DISTRIBUTIONS];

static void add_chunk(void) {
    chunks = realloc(chunks, (chunk_count + 1) * sizeof *chunks);
    struct record *made = chunks ? malloc(CHUNK * sizeof *made) : NULL;
    if (!made) {
        fail(OTHER, "no memory for another %d records", CHUNK);
    }
    memset(made, 1, CHUNK * sizeof *made);  // touched: no page faults in the window
    chunks[chunk_count++] = made;
}

void records_prepare(const struct spec *spec) {
    histograms = spec->histograms;
    if (histograms) {
        for (int i = 0; i < DISTRIBUTIONS; i++) {
            histogram_prepare(&distributions[i]);
        }
        return;
    }
    double rate = spec->open_loop ? 1.1 * spec->rate : 100000;  // an estimate: the number for a fast protocol
    double expected = spec->extent.requests ? (double)spec->extent.requests : rate * 1e-9 * (double)spec->extent.duration;
    expected = expected < MOST_EXPECTED ? expected : MOST_EXPECTED;
    while ((double)(chunk_count * CHUNK) <= expected) {
        add_chunk();
    }
}

static void keep_times(const struct record *r) {
    histogram_add(&distributions[LAG], r->start - r->intended);
    if (r->failure) {
        histogram_add(&distributions[FAILURE], r->end - r->intended);
        return;
    }
    histogram_add(&distributions[RESPONSE], r->end - r->intended);
    histogram_add(&distributions[SERVICE], r->end - r->start);
    histogram_add(&distributions[FIRST_BYTE], r->first_byte - r->start);
    moment ready = r->ready ? r->ready : r->connected;
    if (r->opened && ready) {
        histogram_add(&distributions[HANDSHAKE], ready - r->start);
    }
}

void records_keep(const struct record *r) {
    connections += r->opened;
    handshakes[r->handshake]++;
    failed[r->failure]++;
    if (!r->failure) {
        succeeded++;
        bytes_in += r->bytes_in;
        bytes_out += r->bytes_out;
    }
    if (histograms) {
        keep_times(r);
        return;
    }
    if (kept == chunk_count * CHUNK) {
        add_chunk();
    }
    chunks[kept / CHUNK][kept % CHUNK] = *r;
    kept++;
}

uint64_t records_succeeded(void) {
    return succeeded;
}

static json_object *counted(const uint64_t *counts, const char *const *words, int length) {
    json_object *object = json_object_new_object();
    for (int i = 1; i < length; i++) {
        if (counts[i]) {
            json_object_object_add(object, words[i], json_object_new_uint64(counts[i]));
        }
    }
    return object;
}

json_object *records_errors(void) {
    return counted(failed, KIND_WORDS, KINDS);
}

static void write_sample(FILE *file, const struct record *r, moment zero) {
    fprintf(file, "{\"intended_ns\":%" PRId64 ",\"start_ns\":%" PRId64, r->intended - zero, r->start - zero);
    const struct { const char *name; moment at; } times[] = {
        {"connected_ns", r->connected}, {"handshake_ns", r->ready}, {"first_byte_ns", r->first_byte}, {"last_byte_ns", r->end},
    };
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        if (times[i].at) {
            fprintf(file, ",\"%s\":%" PRId64, times[i].name, times[i].at - zero);
        }
    }
    fprintf(file, ",\"bytes_out\":%" PRIu64 ",\"bytes_in\":%" PRIu64 ",\"connection\":%" PRIu32, r->bytes_out, r->bytes_in, r->connection);
    if (r->status) {
        fprintf(file, ",\"status\":%d", r->status);
    }
    if (r->handshake) {
        fprintf(file, ",\"handshake\":\"%s\"", HANDSHAKE_WORDS[r->handshake]);
    }
    if (r->failure) {
        fprintf(file, ",\"error\":\"%s\"", KIND_WORDS[r->failure]);
    }
    fputs("}\n", file);
}

static void write_histograms(FILE *file) {
    json_object *all = json_object_new_object();
    for (int i = 0; i < DISTRIBUTIONS; i++) {
        json_object_object_add(all, DISTRIBUTION_WORDS[i], histogram_encode(&distributions[i]));
    }
    json_object_object_add(all, "requests", json_object_new_uint64(succeeded));
    json_object_object_add(all, "errors", records_errors());
    json_object_object_add(all, "bytes_in", json_object_new_uint64(bytes_in));
    json_object_object_add(all, "bytes_out", json_object_new_uint64(bytes_out));
    json_object_object_add(all, "connections", json_object_new_uint64(connections));
    json_object_object_add(all, "handshakes", counted(handshakes, HANDSHAKE_WORDS, HANDSHAKES));
    fprintf(file, "%s\n", json_object_to_json_string_ext(all, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    json_object_put(all);
}

void records_write(const struct spec *spec, moment zero) {
    FILE *file = fopen(spec->results, "w");
    if (!file) {
        fail(OTHER, "writing the results to %s: %s", spec->results, strerror(errno));
    }
    if (histograms) {
        write_histograms(file);
    }
    for (uint64_t i = 0; i < kept; i++) {
        write_sample(file, &chunks[i / CHUNK][i % CHUNK], zero);
    }
    if (fflush(file) != 0 || fsync(fileno(file)) != 0 || fclose(file) != 0) {
        fail(OTHER, "writing the results to %s: %s", spec->results, strerror(errno));
    }
}
