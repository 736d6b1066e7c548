#include "site.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The longest delay that a client may ask for, in microseconds (an hour), and the largest generated body.
static const uint64_t LONGEST_DELAY = 3600000000, LARGEST_BODY = 1ULL << 40;

static const struct server_spec *site;

void site_prepare(const struct server_spec *spec) {
    site = spec;
    if (spec->document_root) {
        documents_load(spec->document_root);
    }
}

// The rest after a prefix; NULL: the path begins otherwise.
static const char *after(const char *path, const char *prefix) {
    size_t length = strlen(prefix);
    return strncmp(path, prefix, length) == 0 ? path + length : NULL;
}

// A whole number up to `most`, all of the text.
static bool number(const char *text, uint64_t most, uint64_t *value) {
    char *end;
    errno = 0;
    *value = strtoull(text, &end, 10);
    return isdigit((unsigned char)*text) && *end == 0 && errno == 0 && *value <= most;
}

// The square root by Heron's method, as the contract defines it; NaN: the number has none.
static double root(double n) {
    if (!isfinite(n) || n < 0) {
        return NAN;
    }
    if (n == 0) {
        return 0;
    }
    double guess = n > 1 ? n : 1;
    for (double mean; (mean = (guess + n / guess) / 2) < guess; guess = mean) {
    }
    return guess;
}

static void heron(struct reply *reply, const char *text) {
    char *end;
    double found = *text && !isspace((unsigned char)*text) ? root(strtod(text, &end)) : NAN;
    if (isnan(found) || *end) {
        reply->status = 400;
        return;
    }
    reply->kind = TEXT;
    reply->size = (uint64_t)snprintf(reply->text, sizeof reply->text, "%.12f", found);
}

void site_reply(struct reply *reply, const char *method, const char *path) {
    const char *rest;
    *reply = (struct reply){.kind = EMPTY, .status = 200};
    if (site->echo && strcmp(path, "/echo") == 0) {
        if (strcmp(method, "POST") == 0) {
            reply->kind = ECHO;
        } else {
            reply->status = 405;
        }
    } else if (strcmp(method, "GET") != 0) {
        reply->status = 405;
    } else if (site->bytes && (rest = after(path, "/bytes/"))) {
        if (number(rest, LARGEST_BODY, &reply->size)) {
            reply->kind = PATTERN;
        } else {
            reply->status = 400;
        }
    } else if (site->delay && (rest = after(path, "/delay/"))) {
        if (number(rest, LONGEST_DELAY, &reply->delay)) {
            reply->kind = LATER;
        } else {
            reply->status = 400;
        }
    } else if (site->heron && (rest = after(path, "/heron/"))) {
        heron(reply, rest);
    } else if (site->redirect && strcmp(path, "/redirect") == 0) {
        reply->status = 302;
        reply->redirects = true;
    } else if ((reply->document = documents_find(path))) {
        reply->kind = DOCUMENT;
    } else {
        reply->status = 404;
    }
}
