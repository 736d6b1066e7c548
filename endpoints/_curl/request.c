// The request of the spec, as options of libcurl.
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "parts.h"

static const long VERSIONS[PROTOCOLS] = {
    [H1C] = CURL_HTTP_VERSION_1_1,
    [H1] = CURL_HTTP_VERSION_1_1,
    [H2C] = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE,
    [H2] = CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE,
    [H3] = CURL_HTTP_VERSION_3ONLY,
};

// Fields that libcurl would add and the other clients do not send.
static const char *const UNWANTED[] = {"Accept", "Content-Type", "Expect", "User-Agent"};

static char url[640], host[600];
static struct curl_slist *headers, *resolved;
static char *body;

static bool given(const struct spec *spec, const char *name) {
    for (size_t i = 0; spec->headers && i < json_object_array_length(spec->headers); i++) {
        json_object *pair = json_object_array_get_idx(spec->headers, i);
        if (strcasecmp(json_object_get_string(json_object_array_get_idx(pair, 0)), name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_header(const char *format, const char *name, const char *value) {
    char line[8192];
    if (snprintf(line, sizeof line, format, name, value) >= (int)sizeof line) {
        refuse("request: `headers`: `%s` is too long; supported: 8 KB", name);
    }
    headers = curl_slist_append(headers, line);
}

static void prepare_headers(const struct spec *spec) {
    for (size_t i = 0; spec->headers && i < json_object_array_length(spec->headers); i++) {
        json_object *pair = json_object_array_get_idx(spec->headers, i);
        const char *name = json_object_get_string(json_object_array_get_idx(pair, 0));
        const char *value = json_object_get_string(json_object_array_get_idx(pair, 1));
        // For libcurl, "name:" is a field that it must not send.
        add_header(*value ? "%s: %s" : "%s;%s", name, value);
    }
    add_header("%s: %s", "Host", host);
    for (size_t i = 0; i < sizeof UNWANTED / sizeof *UNWANTED; i++) {
        if (!given(spec, UNWANTED[i])) {
            add_header("%s:%s", UNWANTED[i], "");
        }
    }
}

void request_prepare(const struct spec *spec) {
    bool v6 = strchr(spec->server_name, ':');
    snprintf(host, sizeof host, v6 ? "[%s]" : "%s", spec->server_name);
    snprintf(url, sizeof url, "%s://%s:%d/", ALPN[spec->protocol] ? "https" : "http", host, spec->port);
    prepare_headers(spec);
    // The name is not resolved. The callback that makes a socket chooses the address.
    char entry[900];
    const char *address = spec->addresses[0].text;
    snprintf(entry, sizeof entry, strchr(address, ':') ? "%s:%d:[%s]" : "%s:%d:%s", spec->server_name, spec->port, address);
    resolved = curl_slist_append(NULL, entry);
    if (spec->body_size) {
        body = allocate(1, spec->body_size);
        for (uint64_t i = 0; i < spec->body_size; i++) {
            body[i] = (char)(i % 251);
        }
    }
}

void request_set(CURL *easy, const struct spec *spec) {
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_REQUEST_TARGET, spec->path);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_RESOLVE, resolved);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, VERSIONS[spec->protocol]);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");  // whatever the environment says
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    if (spec->body_size || strcmp(spec->method, "POST") == 0) {
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)spec->body_size);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body ? body : "");  // not copied
    } else if (strcmp(spec->method, "HEAD") == 0) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, spec->method);
}
