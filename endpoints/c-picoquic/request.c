#include "request.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "contract.h"
#include "pattern.h"

struct head request;

static void add_headers(json_object *headers) {
    for (size_t i = 0; headers && i < json_object_array_length(headers); i++) {
        json_object *pair = json_object_array_get_idx(headers, i);
        char name[256];
        size_t k = 0;
        for (const char *from = json_object_get_string(json_object_array_get_idx(pair, 0)); *from && k < sizeof name - 1; from++) {
            name[k++] = (char)tolower((unsigned char)*from);  // HTTP/3 has no others
        }
        name[k] = 0;
        head_add_named(&request, name, json_object_get_string(json_object_array_get_idx(pair, 1)));
    }
}

void request_prepare(const struct spec *spec) {
    char host[300], number[24];
    head_begin(&request);
    if (strcmp(spec->method, "GET") == 0) {
        head_add_known(&request, FIELD_GET);
    } else if (strcmp(spec->method, "POST") == 0) {
        head_add_known(&request, FIELD_POST);
    } else {
        head_add(&request, FIELD_METHOD, spec->method);
    }
    head_add_known(&request, FIELD_HTTPS);
    snprintf(host, sizeof host, strchr(spec->server_name, ':') ? "[%s]:%d" : "%s:%d", spec->server_name, spec->port);
    head_add(&request, FIELD_AUTHORITY, host);
    head_add(&request, FIELD_PATH, spec->path);
    if (spec->body_size) {
        snprintf(number, sizeof number, "%llu", (unsigned long long)spec->body_size);
        head_add(&request, FIELD_LENGTH, number);
    }
    add_headers(spec->headers);
    if (!head_end(&request, spec->body_size)) {
        refuse("request: `path` and `headers` are too long; supported: 64 KB in all");
    }
    pattern_prepare();
}
