// The driver: libcurl's multi interface on the engine's loop.
#include <string.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "loop.h"
#include "parts.h"

static const struct spec *spec;
static struct hub *common;  // of connections for one request each
static CURLSH *tickets;     // NULL: none are wanted

static const long ANSWERS[PROTOCOLS] = {
    [H1C] = CURL_HTTP_VERSION_1_1, [H1] = CURL_HTTP_VERSION_1_1, [H2C] = CURL_HTTP_VERSION_2_0,
    [H2] = CURL_HTTP_VERSION_2_0,  [H3] = CURL_HTTP_VERSION_3,
};

const struct library *driver_library(void) {
    static char version[300];
    static const char *const features[] = {"files", "bytes", "echo", "delay", NULL};
    const curl_version_info_data *all = curl_version_info(CURLVERSION_NOW);
    bool http3 = all->features & CURL_VERSION_HTTP3;
    const char *quic = http3 && all->quic_version ? all->quic_version : "no HTTP/3";
    snprintf(version, sizeof version, "%s (%s, nghttp2/%s, %s)", all->version, all->ssl_version,
             all->nghttp2_version ? all->nghttp2_version : "none", quic);
    static struct library library = {.endpoint = ENDPOINT, .version = version, .features = features};
    library.name = strstr(quic, "ngtcp2") ? "libcurl, ngtcp2, nghttp3" : "libcurl, OpenSSL, nghttp3";
    static const char *without[] = {"h1c", "h1", "h2c", "h2", NULL};
    library.protocols = http3 ? PROTOCOL_WORDS : without;
    return &library;
}

// Reports the results of the requests that have ended.
static void tell(struct hub *hub) {
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(hub->multi, &left));) {
        if (message->msg != CURLMSG_DONE) {
            continue;
        }
        CURL *easy = message->easy_handle;
        CURLcode code = message->data.result;
        struct exchange *exchange;
        long status = 0, version = 0;
        curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&exchange);
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
        curl_easy_getinfo(easy, CURLINFO_HTTP_VERSION, &version);
        struct record *record = &exchange->record;
        record->status = (uint16_t)status;
        const char *why = NULL;
        enum kind failure = NONE;
        if (code != CURLE_OK) {
            failure = failure_of(exchange, code, spec->protocol == H3, &why);
        } else if (version != ANSWERS[spec->protocol]) {
            failure = PROTOCOL;
            why = "the response came by another version of HTTP";
        } else {
            record->end = own_of(exchange)->last;
        }
        driver_cancel(exchange);
        engine_ended(exchange, failure, why);
    }
}

static void act(struct hub *hub, curl_socket_t descriptor, int events) {
    int running;
    curl_multi_socket_action(hub->multi, descriptor, events, &running);
    tell(hub);
}

static void ring(void *of) {
    act(of, CURL_SOCKET_TIMEOUT, 0);
}

static void happen(void *of, int descriptor, uint32_t events) {
    act(of, descriptor, (events & EPOLLIN ? CURL_CSELECT_IN : 0) | (events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                            (events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0));
}

static int watch(CURL *easy, curl_socket_t descriptor, int what, void *of, void *unused) {
    (void)easy, (void)unused;
    uint32_t events = what == CURL_POLL_REMOVE ? 0 : (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0);
    loop_watch(descriptor, events, happen, of);
    return 0;
}

static int set_timer(CURLM *multi, long milliseconds, void *of) {
    (void)multi;
    struct hub *hub = of;
    if (milliseconds < 0) {
        alarm_cancel(&hub->timer);
    } else {
        alarm_set(&hub->timer, now() + (moment)milliseconds * 1000000);
    }
    return 0;
}

static struct hub *hub_new(void) {
    struct hub *hub = allocate(1, sizeof *hub);
    hub->timer = (struct alarm){.act = ring, .of = hub};
    hub->multi = curl_multi_init();
    if (!hub->multi) {
        fail(OTHER, "libcurl makes no multi handle");
    }
    curl_multi_setopt(hub->multi, CURLMOPT_SOCKETFUNCTION, watch);
    curl_multi_setopt(hub->multi, CURLMOPT_SOCKETDATA, hub);
    curl_multi_setopt(hub->multi, CURLMOPT_TIMERFUNCTION, set_timer);
    curl_multi_setopt(hub->multi, CURLMOPT_TIMERDATA, hub);
    return hub;
}

static void hub_free(struct hub *hub) {
    curl_multi_cleanup(hub->multi);
    alarm_cancel(&hub->timer);
    free(hub);
}

void driver_prepare(const struct spec *of) {
    spec = of;
    bool ngtcp2 = strstr(driver_library()->name, "ngtcp2");
    if (spec->qlog_dir && !ngtcp2) {
        refuse("spec: cannot honour `qlog_dir`: OpenSSL writes none as Debian builds it");
    }
    if (spec->resumes && spec->protocol == H3 && !ngtcp2) {
        refuse("spec: `resumption` = \"resume\": over OpenSSL's QUIC libcurl resumes no session");
    }
    // libcurl takes both from the environment alone, so a variable that the spec does not set must be absent.
    if (spec->key_log) {
        setenv("SSLKEYLOGFILE", spec->key_log, 1);
    } else {
        unsetenv("SSLKEYLOGFILE");
    }
    if (spec->qlog_dir) {
        setenv("QLOGDIR", spec->qlog_dir, 1);
    } else {
        unsetenv("QLOGDIR");
    }
    if (curl_global_init(CURL_GLOBAL_ALL) != CURLE_OK) {
        fail(OTHER, "libcurl cannot be initialised");
    }
    connection_prepare(spec);
    request_prepare(spec);
    if (spec->resumes) {
        tickets = curl_share_init();
        curl_share_setopt(tickets, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    }
    common = hub_new();
}

json_object *driver_configured(void) {
    return connection_facts();
}

struct link *link_new(bool kept) {
    struct link *link = allocate(1, sizeof *link);
    *link = (struct link){.hub = kept ? hub_new() : common, .kept = kept, .descriptor = -1};
    if (kept) {
        curl_multi_setopt(link->hub->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, 1L);
    }
    return link;
}

void link_free(struct link *link) {
    if (link->kept) {
        hub_free(link->hub);
        free(link);
    }
    // The handle for single requests may still have a socket to close; it stays.
}

void driver_finish(void) {
    hub_free(common);
}

static size_t header(char *text, size_t one, size_t length, void *of) {
    (void)text, (void)one;
    struct exchange *exchange = of;
    own_of(exchange)->last = now();
    if (!exchange->record.first_byte) {
        exchange->record.first_byte = own_of(exchange)->last;
    }
    return length;
}

static size_t body(char *bytes, size_t one, size_t length, void *of) {
    (void)one;
    struct exchange *exchange = of;
    own_of(exchange)->last = now();
    exchange->record.bytes_in += length;
    if (exchange->digest) {
        EVP_DigestUpdate(exchange->digest, bytes, length);
    }
    return length;
}

void driver_lane(struct exchange *exchange) {
    struct own *own = exchange->own = allocate(1, sizeof *own);
    own->easy = curl_easy_init();
    if (!own->easy) {
        fail(OTHER, "libcurl makes no easy handle");
    }
    curl_easy_setopt(own->easy, CURLOPT_PRIVATE, exchange);
    curl_easy_setopt(own->easy, CURLOPT_ERRORBUFFER, own->error);
    curl_easy_setopt(own->easy, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(own->easy, CURLOPT_HEADERDATA, exchange);
    curl_easy_setopt(own->easy, CURLOPT_WRITEFUNCTION, body);
    curl_easy_setopt(own->easy, CURLOPT_WRITEDATA, exchange);
    if (tickets) {
        curl_easy_setopt(own->easy, CURLOPT_SHARE, tickets);
    }
    request_set(own->easy, spec);
    connection_set(own->easy, exchange);
}

void driver_lane_free(struct exchange *exchange) {
    curl_easy_cleanup(own_of(exchange)->easy);
    free(exchange->own);
}

void driver_send(struct exchange *exchange) {
    struct own *own = own_of(exchange);
    own->asked = own->again = false;
    own->error[0] = 0;
    exchange->record.connection = exchange->link->number;
    CURLMcode code = curl_multi_add_handle(exchange->link->hub->multi, own->easy);
    if (code != CURLM_OK) {
        fail(OTHER, "libcurl takes no request: %s", curl_multi_strerror(code));
    }
    act(exchange->link->hub, CURL_SOCKET_TIMEOUT, 0);
}

void driver_cancel(struct exchange *exchange) {
    struct link *link = exchange->link;
    curl_multi_remove_handle(link->hub->multi, own_of(exchange)->easy);
    if (link->opener == exchange) {
        link->opener = NULL;
    }
    if (!own_of(exchange)->asked) {
        exchange->record.bytes_out = 0;
    }
}
