// What a server is asked to do.
#ifndef SERVER_SPEC_H
#define SERVER_SPEC_H

#include "spec.h"

struct server_spec {
    struct address address;
    const char *certificate, *key, *key_log;
    bool resumes, early;
    const char *document_root;  // NULL: there are no files
    bool echo, bytes, delay, redirect, heron;
    const char *qlog_dir;
    uint64_t threads;
    struct quic_settings quic;
};

// The protocols and features that a server has; both end with NULL.
extern const char *const SERVED[], *const OFFERED[];

// Takes every field of a server's spec, or refuses it.
struct server_spec server_spec_read(const char *path);

#endif
