#include "serving.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "contract.h"
#include "loop.h"

static bool stopped;
static uint64_t (*answered)(void);

static void hear(void *of, int descriptor, uint32_t events) {
    static char words[256];
    static size_t held;
    (void)of, (void)events;
    ssize_t length = read(descriptor, words + held, sizeof words - held);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    stopped = length <= 0;  // the end of the input means `stop`
    held += length > 0 ? (size_t)length : 0;
    for (char *end; !stopped && (end = memchr(words, '\n', held)); ) {
        *end = 0;
        if (strcmp(words, "count") == 0) {
            json_object *counted = event("counted");
            json_object_object_add(counted, "requests", json_object_new_uint64(answered()));
            emit(counted);
        } else if (strcmp(words, "stop") == 0) {
            stopped = true;
        } else {
            fail(OTHER, "expected the word `count` or `stop`; it is `%s`", words);
        }
        held -= (size_t)(end + 1 - words);
        memmove(words, end + 1, held);
    }
    if (held == sizeof words) {
        fail(OTHER, "expected the word `count` or `stop`; it is a line of more than %zu bytes", sizeof words);
    }
}

static bool over(void) {
    return stopped;
}

static void nothing(void) {}

void serving_run(uint16_t port, json_object *configured, uint64_t (*count)(void)) {
    answered = count;
    loop_watch(STDIN_FILENO, EPOLLIN, hear, NULL);
    json_object *ready = event("ready");
    json_object_object_add(ready, "port", json_object_new_int(port));
    json_object_object_add(ready, "configured", configured);
    emit(ready);
    loop_until(over, nothing);
}

void serving_done(uint64_t requests, json_object *configured, json_object *transport) {
    json_object *done = event("done");
    json_object_object_add(done, "requests", json_object_new_uint64(requests));
    json_object_object_add(done, "configured", configured);
    if (transport) {
        json_object_object_add(done, "transport", transport);
    }
    emit(done);
}
