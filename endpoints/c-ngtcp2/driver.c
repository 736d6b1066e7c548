// The driver: what the engine and the command line ask of this endpoint.
#include "driver.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>

#include "line.h"
#include "loop.h"
#include "request.h"
#include "server.h"

static const struct spec *spec;

const struct library *driver_library(void) {
    static char version[200];
    snprintf(version, sizeof version, "%s (nghttp3/%s, OpenSSL/%s)", ngtcp2_version(0)->version_str,
             nghttp3_version(0)->version_str, OpenSSL_version(OPENSSL_VERSION_STRING));
    static const char *const protocols[] = {"h3", NULL};
    static const char *const features[] = {"files", "echo", "bytes", "delay", "redirect", "heron", NULL};
    static const struct library library = {
        .endpoint = ENDPOINT, .name = "ngtcp2, nghttp3, OpenSSL", .version = version, .protocols = protocols, .features = features,
        .sets_quic = true, .served = protocols, .offered = features, .serve = server_run, .warm = line_warm,
        .transport = line_transport,
    };
    return &library;
}

void driver_prepare(const struct spec *of) {
    spec = of;
    line_prepare(spec);
    request_prepare(spec);
}

json_object *driver_configured(void) {
    return line_facts();
}

struct link *link_new(bool kept) {
    struct link *link = allocate(1, sizeof *link);
    link->kept = kept;
    return link;
}

static bool is_ticket_there(void) {
    return tickets_any() || !line_lingers();
}

static void nothing(void) {}

void link_free(struct link *link) {
    line_drop(link);
    // The next connection could resume nothing yet.
    if (spec->resumes) {
        loop_until(is_ticket_there, nothing);
    }
    free(link);
}

void driver_finish(void) {
    line_finish();
}
