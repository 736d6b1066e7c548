#include "server.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "loop.h"

static bool known(const char *word, const char *const *words) {
    for (; *words; words++) {
        if (strcmp(*words, word) == 0) {
            return true;
        }
    }
    return false;
}

static void read_features(struct fields *f, const struct library *library) {
    json_object *list = take_list(f, "features");
    for (size_t i = 0; i < json_object_array_length(list); i++) {
        const char *feature = json_object_get_string(json_object_array_get_idx(list, i));
        if (!feature || !known(feature, library->offered)) {
            refuse("spec: `features`: %s has no `%.60s`", library->endpoint, feature ? feature : "null");
        }
    }
}

static void read_tls(struct server_spec *s, struct fields tls) {
    s->certificate = take_text(&tls, "certificate");
    s->key = take_text(&tls, "key");
    s->key_log = has(&tls, "key_log") ? take_text(&tls, "key_log") : NULL;
    s->resumption = take_bool(&tls, "resumption");
    s->early_data = take_bool(&tls, "early_data");
    fields_end(&tls);
}

static int64_t buffer(struct fields *f, const char *name) {
    return has(f, name) ? (int64_t)take_count(f, name, 1, INT32_MAX) : -1;
}

static void read_transport(struct server_spec *s, struct fields f) {
    if (has(&f, "congestion")) {
        const char *const words[] = {"cubic", "bbr", "reno", NULL};
        s->congestion = words[take_word(&f, "congestion", words)];
    }
    s->gso = has(&f, "gso") ? take_bool(&f, "gso") : -1;
    s->gro = has(&f, "gro") ? take_bool(&f, "gro") : -1;
    s->udp_send_buffer = buffer(&f, "udp_send_buffer");
    s->udp_receive_buffer = buffer(&f, "udp_receive_buffer");
    fields_end(&f);
}

// What is read is what a server with QUIC has; another one will need the settings of TCP.
struct server_spec server_read(const char *path, const struct library *library) {
    struct fields f = fields_read(path);
    struct server_spec s = {.gso = -1, .gro = -1, .udp_send_buffer = -1, .udp_receive_buffer = -1};
    take_count(&f, "contract", CONTRACT_VERSION, CONTRACT_VERSION);
    const char *word = library->protocols[take_word(&f, "protocol", library->protocols)];
    while (strcmp(PROTOCOL_WORDS[s.protocol], word) != 0) {
        s.protocol++;
    }
    const char *address = take_text(&f, "address");
    s.address = address_read(address, (uint16_t)take_count(&f, "port", 0, UINT16_MAX));
    s.server_name = take_text(&f, "server_name");
    read_features(&f, library);
    read_tls(&s, take_fields(&f, "tls"));
    s.root = has(&f, "document_root") ? take_text(&f, "document_root") : NULL;
    s.qlog_dir = has(&f, "qlog_dir") ? take_text(&f, "qlog_dir") : NULL;
    if (has(&f, "counts")) {
        take_bool(&f, "counts");  // it can always tell
    }
    if (has(&f, "threads")) {
        take_count(&f, "threads", 1, 1);
    }
    if (has(&f, "transport")) {
        read_transport(&s, take_fields(&f, "transport"));
    }
    fields_end(&f);
    return s;
}

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

void server_run(uint16_t port, json_object *configured, uint64_t (*count)(void)) {
    answered = count;
    loop_watch(STDIN_FILENO, EPOLLIN, hear, NULL);
    json_object *ready = event("ready");
    json_object_object_add(ready, "port", json_object_new_int(port));
    json_object_object_add(configured, "threads", json_object_new_int(1));
    json_object_object_add(ready, "configured", configured);
    emit(ready);
    loop_until(over, nothing);
}

void server_done(uint64_t requests, json_object *configured, json_object *transport) {
    json_object *done = event("done");
    json_object_object_add(done, "requests", json_object_new_uint64(requests));
    json_object_object_add(done, "configured", configured);
    if (transport) {
        json_object_object_add(done, "transport", transport);
    }
    emit(done);
}
