#include "site.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "contract.h"

enum { PERIOD = 251, REPEATED = 64 * PERIOD };

static int root = -1;
static uint8_t pattern[REPEATED + PERIOD];

void site_prepare(const char *path) {
    for (size_t i = 0; i < sizeof pattern; i++) {
        pattern[i] = (uint8_t)(i % PERIOD);
    }
    root = path ? open(path, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    if (path && root < 0) {
        fail(OTHER, "opening the document root %s: %s", path, strerror(errno));
    }
}

void pattern_fill(uint64_t offset, uint8_t *to, size_t length) {
    while (length) {
        size_t part = length < REPEATED ? length : REPEATED;
        memcpy(to, pattern + offset % PERIOD, part);
        offset += part, to += part, length -= part;
    }
}

static struct answer empty(int status) {
    return (struct answer){.status = status, .body = TEXT, .document = -1};
}

// The rest of a path behind a prefix; NULL: it begins otherwise.
static const char *after(const char *path, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(path, prefix, length) == 0 ? path + length : NULL;
}

// A whole number in decimals, or -1.
static int64_t whole(const char *text) {
    char *end;
    if (*text < '0' || *text > '9') {
        return -1;
    }
    errno = 0;
    long long number = strtoll(text, &end, 10);
    return *end || errno ? -1 : number;
}

static struct answer heron(const char *text) {
    char *end;
    double n = strtod(text, &end);
    if (end == text || *end || !(n >= 0) || isinf(n)) {
        return empty(400);
    }
    double x = n > 1 ? n : 1;
    for (double next; n > 0 && (next = (x + n / x) / 2) < x; ) {
        x = next;
    }
    struct answer answer = empty(200);
    answer.size = (uint64_t)snprintf(answer.text, sizeof answer.text, "%.12f", n > 0 ? x : 0.0);
    return answer;
}

static struct answer document(const char *path) {
    struct open_how how = {.flags = O_RDONLY | O_CLOEXEC, .resolve = RESOLVE_BENEATH};
    int descriptor = root < 0 ? -1 : (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    struct stat facts;
    if (descriptor >= 0 && (fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode))) {
        close(descriptor);
        descriptor = -1;
    }
    if (descriptor < 0) {
        return empty(404);
    }
    return (struct answer){.status = 200, .body = DOCUMENT, .size = (uint64_t)facts.st_size, .document = descriptor};
}

struct answer site_answer(const char *method, const char *path) {
    const char *rest;
    if (strcmp(method, "POST") == 0 && strcmp(path, "/echo") == 0) {
        return (struct answer){.status = 200, .body = ECHO, .document = -1};
    }
    if (strcmp(method, "GET") != 0) {
        return empty(405);
    }
    if ((rest = after(path, "/bytes/"))) {
        int64_t size = whole(rest);
        struct answer answer = empty(size < 0 ? 400 : 200);
        answer.body = PATTERN;
        answer.size = size < 0 ? 0 : (uint64_t)size;
        return answer;
    }
    if ((rest = after(path, "/delay/"))) {
        int64_t delay = whole(rest);
        bool right = delay >= 0 && delay <= INT64_MAX / 2000;
        struct answer answer = empty(right ? 200 : 400);
        answer.delay = right ? delay * 1000 : 0;
        return answer;
    }
    if (strcmp(path, "/redirect") == 0) {
        struct answer answer = empty(302);
        answer.location = "/redirect";
        return answer;
    }
    if ((rest = after(path, "/heron/"))) {
        return heron(rest);
    }
    return *path == '/' && path[1] ? document(path + 1) : empty(404);
}

void site_fill(const struct answer *answer, const uint8_t *echoed, uint64_t offset, uint8_t *to, size_t length) {
    switch (answer->body) {
    case PATTERN:
        pattern_fill(offset, to, length);
        break;
    case TEXT:
        memcpy(to, answer->text + offset, length);
        break;
    case ECHO:
        memcpy(to, echoed + offset, length);
        break;
    case DOCUMENT:
        for (size_t done = 0; done < length; ) {
            ssize_t read = pread(answer->document, to + done, length - done, (off_t)(offset + done));
            if (read <= 0) {
                fail(OTHER, "a document became shorter while it was served: %s", read ? strerror(errno) : "its end came early");
            }
            done += (size_t)read;
        }
    }
}

void site_forget(struct answer *answer) {
    if (answer->document >= 0) {
        close(answer->document);
        answer->document = -1;
    }
}
