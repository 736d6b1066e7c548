// The spec of a client.
#ifndef SPEC_H
#define SPEC_H

#include <json-c/json.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "fields.h"

enum protocol { H1C, H1, H2C, H2, H3, PROTOCOLS };
extern const char *const PROTOCOL_WORDS[PROTOCOLS + 1];
extern const char *const ALPN[PROTOCOLS];  // NULL: the protocol has no TLS

struct address {
    struct sockaddr_storage socket;
    socklen_t length;
    const char *text;
};

// A number of requests, or a duration where that is 0.
struct extent {
    uint64_t requests;
    int64_t duration;
};

// Settings of QUIC; negative, or NULL: the library's default.
struct quic_settings {
    const char *congestion;
    int64_t stream_window, connection_window, max_udp_payload, udp_send_buffer, udp_receive_buffer;
    int gso, gro;
};

struct spec {
    enum protocol protocol;
    struct address *addresses;
    uint64_t address_count;
    uint16_t port;
    const char *server_name, *trust_anchor, *key_log, *qlog_dir;
    bool verify, resumes, early;
    const char *method, *path;
    uint64_t body_size;
    json_object *headers;  // pairs, or NULL
    bool expects;
    uint64_t expected_status, expected_size;
    const char *expected_digest;
    bool per_request;
    uint64_t connections, streams;  // of persistent connections
    bool open_loop, poisson, pauses;
    uint64_t workers, shortest_pause, longest_pause;
    double rate;
    struct extent extent, warm_up;
    bool warms_up;
    int64_t connect_ns, request_ns;
    uint64_t seed;
    bool histograms;
    const char *results;
    // Transport settings; a negative one is the library's default.
    const char *congestion;
    int fast_open, no_delay;
    int64_t udp_send_buffer, udp_receive_buffer;
    struct quic_settings quic;
};

// Takes every field of a client's spec, or refuses it. `protocols` end with NULL. Where the library has settings for QUIC
// (`sets_quic`) they are in `quic`, UDP's buffers among them; otherwise all but the buffers are refused.
struct spec spec_read(const char *path, const char *const *protocols, bool sets_quic);

// Takes all of QUIC's settings in `transport`.
struct quic_settings quic_settings_take(struct fields *transport);
// An address of a spec, for a socket.
struct address address_read(const char *text, uint16_t port);

#endif
