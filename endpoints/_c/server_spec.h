// The spec of a server.
#ifndef SERVER_SPEC_H
#define SERVER_SPEC_H

#include "driver.h"

struct server_spec {
    struct address address;
    const char *certificate, *key, *key_log;
    bool resumes, early;
    const char *document_root;  // NULL: no files
    bool echo, bytes, delay, redirect, heron;
    const char *qlog_dir;
    uint64_t threads;
    struct quic_settings quic;
};

// Takes every field of a spec for a server on this library, or refuses it. It reads the fields of servers with QUIC.
struct server_spec server_spec_read(const char *path, const struct library *library);

#endif
