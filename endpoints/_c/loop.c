#include "loop.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "alarm.h"
#include "contract.h"

// Each thread of a server has a loop of its own.
static _Thread_local struct watch {
    void (*act)(void *of, int descriptor, uint32_t events);
    void *of;
    uint32_t events;
} *watches;
static _Thread_local int room, loop = -1;

// Received words that no call has awaited yet, each followed by a line feed.
static char words[256];
static size_t held;
static moment heard_at;

void loop_watch(int descriptor, uint32_t events, void (*act)(void *, int, uint32_t), void *of) {
    if (descriptor >= room) {
        int wanted = descriptor + 256;
        watches = realloc(watches, (size_t)wanted * sizeof *watches);
        if (!watches) {
            fail(OTHER, "no memory to watch %d descriptors", wanted);
        }
        memset(watches + room, 0, (size_t)(wanted - room) * sizeof *watches);
        room = wanted;
    }
    struct watch *watch = &watches[descriptor];
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    int operation = !events ? EPOLL_CTL_DEL : watch->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
    if ((events || watch->events) && epoll_ctl(loop, operation, descriptor, &event) != 0) {
        // The kernel forgets a descriptor that was closed meanwhile, and may reuse its number.
        if (events && (errno != ENOENT || epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event) != 0)) {
            fail(OTHER, "watching descriptor %d: %s", descriptor, strerror(errno));
        }
    }
    *watch = events ? (struct watch){act, of, events} : (struct watch){0};
}

static void hear(void *of, int descriptor, uint32_t events) {
    (void)of, (void)events;
    heard_at = now();
    ssize_t length = read(descriptor, words + held, sizeof words - 1 - held);
    if (length < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (length <= 0) {
        fail(OTHER, "the input ended before the end: told to stop");
    }
    held += (size_t)length;
    words[held] = 0;
    if (strncmp(words, "stop\n", 5) == 0 || strstr(words, "\nstop\n")) {
        fail(OTHER, "told to stop before the end");
    }
}

void loop_open(void) {
    loop = epoll_create1(EPOLL_CLOEXEC);
    if (loop < 0) {
        fail(OTHER, "epoll_create1: %s", strerror(errno));
    }
    // Otherwise the kernel may add 50 µs to every wait.
    prctl(PR_SET_TIMERSLACK, 1UL);
}

void loop_listen(void) {
    loop_open();
    loop_watch(STDIN_FILENO, EPOLLIN, hear, NULL);
}

static void turn(void (*after)(void)) {
    moment next = alarm_next();
    struct timespec *limit = NULL, wait;
    if (next != INT64_MAX) {
        moment left = next - now();
        left = left > 0 ? left : 0;
        wait = (struct timespec){left / 1000000000, left % 1000000000};
        limit = &wait;
    }
    struct epoll_event events[64];
    int count = epoll_pwait2(loop, events, sizeof events / sizeof *events, limit, NULL);
    if (count < 0 && errno != EINTR) {
        fail(OTHER, "epoll_pwait2 (Linux 5.11): %s", strerror(errno));
    }
    for (int i = 0; i < count; i++) {
        struct watch *watch = &watches[events[i].data.fd];
        if (watch->act) {
            watch->act(watch->of, events[i].data.fd, events[i].events);
            after();
        }
    }
    alarm_ring();
    after();
}

void loop_until(bool (*over)(void), void (*after)(void)) {
    for (after(); !over(); ) {
        turn(after);
    }
}

static void nothing(void) {}

moment loop_await(const char *word) {
    char *end;
    while (!(end = memchr(words, '\n', held))) {
        turn(nothing);
    }
    *end = 0;
    if (strcmp(words, word) != 0) {
        fail(OTHER, "expected the word `%s`; it is `%s`", word, words);
    }
    held -= (size_t)(end + 1 - words);
    memmove(words, end + 1, held + 1);
    return heard_at;
}
