// The site of a server: chooses the response to a request.
#ifndef SITE_H
#define SITE_H

#include "documents.h"
#include "server_spec.h"

enum reply_kind { EMPTY, DOCUMENT, PATTERN, ECHO, TEXT, LATER };

struct reply {
    enum reply_kind kind;
    int status;
    const struct document *document;
    uint64_t size;    // of a pattern or text
    uint64_t delay;   // in microseconds, counted from the arrival of the request
    char text[352];   // a root of up to 309 digits with twelve decimals
    bool redirects;   // to itself
};

// Loads the documents.
void site_prepare(const struct server_spec *spec);
// `path` is without the query.
void site_reply(struct reply *reply, const char *method, const char *path);

#endif
