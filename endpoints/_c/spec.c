#include "spec.h"

#include <arpa/inet.h>
#include <math.h>
#include <string.h>

#include "contract.h"

const char *const PROTOCOL_WORDS[PROTOCOLS + 1] = {"h1c", "h1", "h2c", "h2", "h3", NULL};
const char *const ALPN[PROTOCOLS] = {[H1] = "http/1.1", [H2] = "h2", [H3] = "h3"};

static const uint64_t MOST = INT64_MAX;

struct address address_read(const char *text, uint16_t port) {
    struct address read = {.text = text};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&read.socket;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&read.socket;
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        read.length = sizeof *v4;
    } else if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        read.length = sizeof *v6;
    } else {
        refuse("spec: `address` = \"%.60s\"; supported: addresses of IPv4 and IPv6", text);
    }
    return read;
}

static void read_addresses(struct spec *s, struct fields *f) {
    const char *first = take_text(f, "address");
    json_object *list = has(f, "addresses") ? take_list(f, "addresses") : NULL;
    size_t count = list ? json_object_array_length(list) : 0;
    s->address_count = count ? count : 1;
    s->addresses = allocate(s->address_count, sizeof *s->addresses);
    s->addresses[0] = address_read(first, s->port);
    for (size_t i = 0; i < count; i++) {
        const char *text = json_object_get_string(json_object_array_get_idx(list, i));
        s->addresses[i] = address_read(text ? text : "null", s->port);
    }
}

static void read_tls(struct spec *s, struct fields *f, bool sets_quic) {
    if (has(f, "resumption")) {
        int asked = take_word(f, "resumption", (const char *[]){"none", "resume", sets_quic ? "zero_rtt" : NULL, NULL});
        s->resumes = asked >= 1;
        s->early = asked == 2;
    }
    bool secure = ALPN[s->protocol];
    if (s->resumes && !secure) {
        refuse("spec: `resumption`: %s has no sessions to resume", PROTOCOL_WORDS[s->protocol]);
    }
    if (has(f, "tls") != secure) {
        refuse("spec: `tls` must be there exactly where the protocol has TLS, and the protocol is %s", PROTOCOL_WORDS[s->protocol]);
    }
    if (secure) {
        struct fields tls = take_fields(f, "tls");
        s->verify = take_bool(&tls, "verify");
        s->trust_anchor = has(&tls, "trust_anchor") ? take_text(&tls, "trust_anchor") : NULL;
        s->key_log = has(&tls, "key_log") ? take_text(&tls, "key_log") : NULL;
        fields_end(&tls);
    }
}

// Header fields that the library writes itself.
static const char *const OWN[] = {"host", "content-length", "transfer-encoding", "connection", "expect"};

static void read_headers(struct spec *s, struct fields *f) {
    s->headers = take_list(f, "headers");
    for (size_t i = 0; i < json_object_array_length(s->headers); i++) {
        json_object *pair = json_object_array_get_idx(s->headers, i);
        for (size_t k = 0; k < 2; k++) {
            if (!json_object_is_type(pair, json_type_array) || json_object_array_length(pair) != 2 ||
                !json_object_is_type(json_object_array_get_idx(pair, k), json_type_string)) {
                refuse("request: `headers` = %.60s; supported: pairs of name and value", json_object_to_json_string(pair));
            }
        }
        const char *name = json_object_get_string(json_object_array_get_idx(pair, 0));
        for (size_t k = 0; k < sizeof OWN / sizeof *OWN; k++) {
            if (strcasecmp(name, OWN[k]) == 0) {
                refuse("request: `headers`: cannot honour `%s`, which the library writes by itself", name);
            }
        }
    }
}

static void read_request(struct spec *s, struct fields f) {
    s->method = take_text(&f, "method");
    s->path = take_text(&f, "path");
    s->body_size = take_count(&f, "body_size", 0, MOST);
    if (has(&f, "headers")) {
        read_headers(s, &f);
    }
    if ((s->expects = has(&f, "expect"))) {
        struct fields expect = take_fields(&f, "expect");
        s->expected_status = take_count(&expect, "status", 0, UINT16_MAX);
        s->expected_size = take_count(&expect, "body_size", 0, MOST);
        s->expected_digest = take_text(&expect, "sha256");
        fields_end(&expect);
    }
    fields_end(&f);
}

static void read_connections(struct spec *s, struct fields f) {
    s->per_request = take_word(&f, "policy", (const char *[]){"per_request", "persistent", NULL}) == 0;
    if (!s->per_request) {
        bool multiplexes = s->protocol >= H2C;
        s->connections = take_count(&f, "connections", 1, INT32_MAX);
        s->streams = take_count(&f, "streams", 1, multiplexes ? INT32_MAX : 1);
    }
    fields_end(&f);
}

static void read_pause(struct spec *s, struct fields f) {
    switch (take_word(&f, "kind", (const char *[]){"none", "fixed", "uniform", NULL})) {
    case 1:
        s->pauses = true;
        s->shortest_pause = s->longest_pause = take_count(&f, "ns", 0, MOST);
        break;
    case 2:
        s->pauses = true;
        s->shortest_pause = take_count(&f, "min_ns", 0, MOST);
        s->longest_pause = take_count(&f, "max_ns", s->shortest_pause, MOST);
    }
    fields_end(&f);
}

static void read_schedule(struct spec *s, struct fields f) {
    s->open_loop = take_word(&f, "loop", (const char *[]){"closed", "open", NULL}) == 1;
    if (s->open_loop) {
        s->rate = take_number(&f, "rate_per_s");
        if (!(s->rate > 0 && s->rate <= 1e9)) {
            refuse("schedule: `rate_per_s` = %g; supported: more than 0, up to 1e9", s->rate);
        }
        s->poisson = take_word(&f, "arrivals", (const char *[]){"uniform", "poisson", NULL}) == 1;
    } else {
        s->workers = take_count(&f, "workers", 1, INT32_MAX);
        if (has(&f, "pause")) {
            read_pause(s, take_fields(&f, "pause"));
        }
    }
    fields_end(&f);
}

static struct extent read_extent(struct fields f) {
    struct extent e = {0};
    if (has(&f, "requests")) {
        e.requests = take_count(&f, "requests", 1, MOST);
    } else {
        e.duration = (int64_t)take_count(&f, "duration_ns", 1, MOST);
    }
    fields_end(&f);
    return e;
}

static int64_t buffer(struct spec *s, struct fields *f, const char *name) {
    if (!has(f, name)) {
        return -1;
    }
    if (s->protocol != H3) {
        refuse("transport: cannot honour `%s`: %s has no UDP", name, PROTOCOL_WORDS[s->protocol]);
    }
    return (int64_t)take_count(f, name, 1, INT32_MAX);
}

static int tcp_switch(struct spec *s, struct fields *f, const char *name) {
    if (!has(f, name)) {
        return -1;
    }
    if (s->protocol == H3) {
        refuse("transport: cannot honour `%s`: h3 has no TCP", name);
    }
    return take_bool(f, name);
}

static int64_t take_if(struct fields *f, const char *name, uint64_t least, uint64_t most) {
    return has(f, name) ? (int64_t)take_count(f, name, least, most) : -1;
}

struct quic_settings quic_settings_take(struct fields *f) {
    const uint64_t largest = (1ULL << 62) - 1;  // that QUIC can write, RFC 9000 section 16
    const char *const known[] = {"cubic", "bbr", "reno", NULL};
    return (struct quic_settings){
        .congestion = has(f, "congestion") ? known[take_word(f, "congestion", known)] : NULL,
        .stream_window = take_if(f, "stream_window", 1, largest),
        .connection_window = take_if(f, "connection_window", 1, largest),
        .max_udp_payload = take_if(f, "max_udp_payload", 1200, 65527),  // RFC 9000 section 14, RFC 768
        .udp_send_buffer = take_if(f, "udp_send_buffer", 1, INT32_MAX),
        .udp_receive_buffer = take_if(f, "udp_receive_buffer", 1, INT32_MAX),
        .gso = has(f, "gso") ? take_bool(f, "gso") : -1,
        .gro = has(f, "gro") ? take_bool(f, "gro") : -1,
    };
}

static void read_transport(struct spec *s, struct fields f, bool sets_quic) {
    if (s->protocol == H3 && sets_quic) {
        s->quic = quic_settings_take(&f);
        fields_end(&f);
        return;
    }
    if (s->protocol != H3 && has(&f, "congestion")) {
        const char *const known[] = {"cubic", "bbr", "reno", NULL};
        s->congestion = known[take_word(&f, "congestion", known)];
    }
    s->fast_open = tcp_switch(s, &f, "fast_open");
    s->no_delay = tcp_switch(s, &f, "no_delay");
    s->udp_send_buffer = buffer(s, &f, "udp_send_buffer");
    s->udp_receive_buffer = buffer(s, &f, "udp_receive_buffer");
    fields_end(&f);  // the library has no setting for any other
}

struct spec spec_read(const char *path, const char *const *protocols, bool sets_quic) {
    struct fields f = fields_read(path);
    struct spec s = {.fast_open = -1, .no_delay = -1, .udp_send_buffer = -1, .udp_receive_buffer = -1};
    s.quic = (struct quic_settings){NULL, -1, -1, -1, -1, -1, -1, -1};
    take_count(&f, "contract", CONTRACT_VERSION, CONTRACT_VERSION);
    const char *word = protocols[take_word(&f, "protocol", protocols)];
    while (strcmp(PROTOCOL_WORDS[s.protocol], word) != 0) {
        s.protocol++;
    }
    s.port = (uint16_t)take_count(&f, "port", 1, UINT16_MAX);
    read_addresses(&s, &f);
    s.server_name = take_text(&f, "server_name");
    read_tls(&s, &f, sets_quic);
    read_request(&s, take_fields(&f, "request"));
    read_connections(&s, take_fields(&f, "connections"));
    read_schedule(&s, take_fields(&f, "schedule"));
    s.extent = read_extent(take_fields(&f, "extent"));
    if ((s.warms_up = has(&f, "warm_up"))) {
        s.warm_up = read_extent(take_fields(&f, "warm_up"));
    }
    struct fields timeouts = take_fields(&f, "timeouts");
    s.connect_ns = (int64_t)take_count(&timeouts, "connect_ns", 1, MOST);
    s.request_ns = (int64_t)take_count(&timeouts, "request_ns", 1, MOST);
    fields_end(&timeouts);
    s.seed = take_count(&f, "seed", 0, UINT64_MAX);
    s.histograms = take_word(&f, "recording", (const char *[]){"samples", "histograms", NULL}) == 1;
    s.results = take_text(&f, "results");
    if (has(&f, "qlog_dir")) {
        s.qlog_dir = take_text(&f, "qlog_dir");
        if (s.protocol != H3) {
            refuse("spec: cannot honour `qlog_dir`: %s has no QUIC", PROTOCOL_WORDS[s.protocol]);
        }
    }
    if (has(&f, "threads")) {
        take_count(&f, "threads", 1, 1);
    }
    if (has(&f, "transport")) {
        read_transport(&s, take_fields(&f, "transport"), sets_quic);
    }
    fields_end(&f);
    return s;
}
