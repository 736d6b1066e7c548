// Declarations that the parts of the driver share.
#ifndef PARTS_H
#define PARTS_H

#include <curl/curl.h>

#include "driver.h"

// A multi handle of libcurl with its timer. Every kept connection has one of its own, because libcurl does not say which
// of several connections a request will use; connections of one request each share one.
struct hub {
    CURLM *multi;
    struct alarm timer;
};

struct link {
    struct hub *hub;
    bool kept;
    int descriptor;           // of the connection that was opened last, while it is open; or -1
    uint32_t number;          // of that connection
    struct exchange *opener;  // the request that opened it, while that lasts
    enum handshake handshake;
    bool other_alpn;
};

// The driver's state of a request.
struct own {
    CURL *easy;
    bool asked;   // the request was given to a connection
    bool again;   // libcurl wanted to send it a second time
    moment last;  // when the last part of the response came
    char error[CURL_ERROR_SIZE];
};

static inline struct own *own_of(const struct exchange *exchange) {
    return exchange->own;
}

// request.c: everything that is the same for all requests.
void request_prepare(const struct spec *spec);
void request_set(CURL *easy, const struct spec *spec);

// connection.c: sockets and TLS, and their settings.
void connection_prepare(const struct spec *spec);
void connection_set(CURL *easy, struct exchange *exchange);
json_object *connection_facts(void);

// failure.c
enum kind failure_of(const struct exchange *exchange, CURLcode code, bool quic, const char **why);

#endif
