#include "request.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "contract.h"
#include "head.h"

static struct fields_out request;

static void add(const char *name, const char *value) {
    if (!fields_out_add(&request, name, value)) {
        refuse("request: `path` and `headers` are too long; supported: 32 KB in all, and %d fields", MOST_FIELDS);
    }
}

static void add_headers(json_object *headers) {
    for (size_t i = 0; headers && i < json_object_array_length(headers); i++) {
        json_object *pair = json_object_array_get_idx(headers, i);
        char name[256];
        size_t k = 0;
        for (const char *from = json_object_get_string(json_object_array_get_idx(pair, 0)); *from && k < sizeof name - 1; from++) {
            name[k++] = (char)tolower((unsigned char)*from);  // HTTP/3 has no others
        }
        name[k] = 0;
        add(name, json_object_get_string(json_object_array_get_idx(pair, 1)));
    }
}

void request_prepare(const struct spec *spec) {
    char host[300], number[24];
    snprintf(host, sizeof host, strchr(spec->server_name, ':') ? "[%s]:%d" : "%s:%d", spec->server_name, spec->port);
    add(":method", spec->method);
    add(":scheme", "https");
    add(":authority", host);
    add(":path", spec->path);
    if (spec->body_size) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)spec->body_size);
        add("content-length", number);
    }
    add_headers(spec->headers);
}

bool request_send(lsquic_stream_t *stream) {
    return fields_out_send(&request, stream);
}
