#include "contract.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const char *const KIND_WORDS[KINDS] = {
    [REFUSED] = "refused",   [UNREACHABLE] = "unreachable", [CERTIFICATE] = "certificate", [TLS] = "tls",
    [PROTOCOL] = "protocol", [RESET] = "reset",             [TRUNCATED] = "truncated",     [TIMEOUT] = "timeout",
    [STATUS] = "status",     [DIGEST] = "digest",           [OTHER] = "other",
};
const char *const HANDSHAKE_WORDS[HANDSHAKES] = {
    [FULL] = "full", [RESUMED] = "resumed", [EARLY_ACCEPTED] = "early_accepted", [EARLY_REJECTED] = "early_rejected",
};

json_object *event(const char *name) {
    json_object *made = json_object_new_object();
    json_object_object_add(made, "event", json_object_new_string(name));
    return made;
}

void emit(json_object *event) {
    char *line;
    int length = asprintf(&line, "%s\n",
                          json_object_to_json_string_ext(event, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
    // wirelab has closed the pipe: the event has no reader.
    if (length < 0 || write(STDOUT_FILENO, line, (size_t)length) != length) {
        exit(1);
    }
    free(line);
    json_object_put(event);
}

static void emit_message(json_object *event_, const char *format, va_list arguments) {
    char *text;
    if (vasprintf(&text, format, arguments) < 0) {
        exit(1);
    }
    json_object_object_add(event_, "message", json_object_new_string(text));
    emit(event_);
}

void refuse(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    emit_message(event("unsupported"), format, arguments);
    exit(127);
}

void fail(enum kind kind, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    json_object *error = event("error");
    json_object_object_add(error, "kind", json_object_new_string(KIND_WORDS[kind]));
    emit_message(error, format, arguments);
    exit(1);
}

void *allocate(uint64_t count, uint64_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (!memory) {
        fail(OTHER, "no memory for %llu times %llu bytes", (unsigned long long)count, (unsigned long long)size);
    }
    return memory;
}
