#include "pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "loop.h"
#include "period.h"

static const struct spec *spec;
static struct exchange **lanes;
static struct link **links;
static uint64_t lane_count, link_count, lane_room, link_room, turn;
static uint32_t numbers;
static char complaint[400];

// A request outside of the schedule, and its result.
static struct exchange *single;
static bool single_over;
static enum kind single_failure;
static char single_message[400];

void pool_begin(const struct spec *of) {
    spec = of;
}

uint32_t engine_number(void) {
    return numbers++;
}

const struct address *engine_address(void) {
    return &spec->addresses[turn++ % spec->address_count];
}

void pool_renumber(void) {
    numbers = 0;
}

static void too_late(void *of) {
    struct exchange *lane = of;
    driver_cancel(lane);
    engine_ended(lane, TIMEOUT, "a deadline passed");
}

static struct exchange *lane_new(struct link *link) {
    struct exchange *lane = allocate(1, sizeof *lane);
    lane->link = link;
    lane->deadline = (struct alarm){.act = too_late, .of = lane};
    driver_lane(lane);
    return lane;
}

void pool_send(struct exchange *lane, moment intended) {
    moment start = now();
    lane->record = (struct record){
        .intended = intended < start ? intended : start, .start = start, .bytes_out = spec->body_size,
    };
    // The connect time-out holds until it can send.
    alarm_set(&lane->deadline, start + (spec->connect_ns < spec->request_ns ? spec->connect_ns : spec->request_ns));
    driver_send(lane);
}

void engine_ready(struct exchange *lane) {
    alarm_set(&lane->deadline, lane->record.start + spec->request_ns);
}

// Whether a complete response is right.
static enum kind judge(const struct record *r, const char **why) {
    if (spec->expects && r->status != spec->expected_status) {
        *why = "the server answered with another status than expected";
        return STATUS;
    }
    // To measure a redirect instead of its target would give a wrong number that looks right. 304 is no redirect.
    if (!spec->expects && r->status >= 300 && r->status != 304) {
        *why = "the server answered with a status that is no success; redirects are not followed";
        return STATUS;
    }
    if (spec->expects && r->bytes_in != spec->expected_size) {
        *why = "the response has another size than expected";
        return r->bytes_in < spec->expected_size ? TRUNCATED : DIGEST;
    }
    return NONE;
}

void engine_ended(struct exchange *lane, enum kind failure, const char *message) {
    struct record *r = &lane->record;
    alarm_cancel(&lane->deadline);
    if (!failure) {
        failure = judge(r, &message);
    }
    r->failure = (uint8_t)failure;
    if (failure && !r->end) {
        r->end = now();
    }
    if (lane == single) {
        single_over = true;
        single_failure = failure;
        snprintf(single_message, sizeof single_message, "%s (status %d, %llu bytes)", failure ? message : "", r->status,
                 (unsigned long long)r->bytes_in);
        return;
    }
    if (failure) {
        pool_complain(failure, message);
    }
    period_ended(lane);
}

void pool_complain(enum kind kind, const char *message) {
    if (!*complaint) {
        snprintf(complaint, sizeof complaint, "%s: %s", KIND_WORDS[kind], message);
    }
}

static bool is_single_over(void) {
    return single_over;
}

static void nothing(void) {}

static void send_single(struct exchange *lane, const char *what) {
    single = lane;
    single_over = false;
    pool_send(lane, now());
    loop_until(is_single_over, nothing);
    single = NULL;
    if (single_failure) {
        fail(single_failure, "%s (%s %s from %s port %d over %s) failed: %s", what, spec->method, spec->path,
             spec->addresses[0].text, spec->port, PROTOCOL_WORDS[spec->protocol], single_message);
    }
}

void pool_check(void) {
    // Without an expectation in the spec, no check is possible, and wirelab may not have started the server.
    if (!spec->expects) {
        return;
    }
    struct link *link = link_new(false);
    struct exchange *lane = lane_new(link);
    lane->digest = EVP_MD_CTX_new();
    if (!lane->digest || EVP_DigestInit_ex(lane->digest, EVP_sha256(), NULL) != 1) {
        fail(OTHER, "the library has no SHA-256");
    }
    send_single(lane, "the check request");
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    char text[2 * EVP_MAX_MD_SIZE + 1] = "";
    EVP_DigestFinal_ex(lane->digest, digest, &length);
    for (unsigned i = 0; i < length; i++) {
        sprintf(text + 2 * i, "%02x", digest[i]);
    }
    if (strcasecmp(text, spec->expected_digest) != 0) {
        fail(DIGEST, "the response to the check request has the SHA-256 %s instead of %s", text, spec->expected_digest);
    }
    EVP_MD_CTX_free(lane->digest);
    driver_lane_free(lane);
    free(lane);
    link_free(link);
    pool_renumber();
}

static void *more(void *items, uint64_t count, uint64_t *room) {
    if (count < *room) {
        return items;
    }
    *room = *room ? 2 * *room : 64;
    void *larger = realloc(items, *room * sizeof(void *));
    if (!larger) {
        fail(OTHER, "no memory for %llu connections", (unsigned long long)*room);
    }
    return larger;
}

static struct link *add_link(void) {
    links = more(links, link_count, &link_room);
    return links[link_count++] = link_new(!spec->per_request);
}

static void add_lane(struct link *link) {
    lanes = more(lanes, lane_count, &lane_room);
    lanes[lane_count++] = lane_new(link);
}

bool pool_grow(void) {
    if (!spec->per_request) {
        return false;
    }
    add_lane(add_link());
    period_lane(lanes[lane_count - 1]);
    return true;
}

// Lanes that an open loop begins with; more are made when they are needed.
enum { BEFOREHAND = 64 };

void pool_open(void) {
    if (spec->per_request) {
        uint64_t count = spec->open_loop ? BEFOREHAND : spec->workers;
        for (uint64_t i = 0; i < count; i++) {
            pool_grow();
        }
        return;
    }
    for (uint64_t i = 0; i < spec->connections; i++) {
        add_link();
    }
    // Successive lanes belong to different connections, so that requests are spread over all.
    for (uint64_t i = 0; i < spec->streams; i++) {
        for (uint64_t k = 0; k < spec->connections; k++) {
            add_lane(links[k]);
        }
    }
    for (uint64_t i = 0; i < lane_count; i++) {
        if (i < spec->connections) {
            send_single(lanes[i], "the first request of a persistent connection");
        }
        period_lane(lanes[i]);
    }
}

void pool_close(void) {
    for (uint64_t i = 0; i < lane_count; i++) {
        driver_lane_free(lanes[i]);
    }
    for (uint64_t i = 0; i < link_count; i++) {
        link_free(links[i]);
    }
    driver_finish();
    if (*complaint) {
        fprintf(stderr, "the first failure of the window: %s\n", complaint);
    }
}
