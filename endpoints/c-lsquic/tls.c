#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"

// Before 2023 BoringSSL said curves, as TLS once did.
#ifndef SSL_GROUP_X25519
#define SSL_CTX_set1_groups_list SSL_CTX_set1_curves_list
#define SSL_get_group_id SSL_get_curve_id
#define SSL_get_group_name SSL_get_curve_name
#endif

// As every endpoint, so that compared cells do not differ in it.
static const char GROUP[] = "X25519";
// The authorities of the machine, where Debian has them.
static const char SYSTEM_ANCHOR[] = "/etc/ssl/certs/ca-certificates.crt";

static int keys = -1;

static const char *why(void) {
    const char *reason = ERR_reason_error_string(ERR_get_error());
    return reason ? reason : "no reason given";
}

static void log_key(const SSL *ssl, const char *line) {
    char whole[512];
    (void)ssl;
    int length = snprintf(whole, sizeof whole, "%s\n", line);
    if (length < (int)sizeof whole && write(keys, whole, (size_t)length) != length) {
        fail(OTHER, "writing the key log: %s", strerror(errno));
    }
}

static SSL_CTX *context(const char *key_log) {
    SSL_CTX *made = SSL_CTX_new(TLS_method());
    if (!made || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 ||
        SSL_CTX_set_max_proto_version(made, TLS1_3_VERSION) != 1 || SSL_CTX_set1_groups_list(made, GROUP) != 1) {
        fail(OTHER, "preparing TLS 1.3: %s", why());
    }
    if (key_log) {
        keys = open(key_log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        if (keys < 0) {
            fail(OTHER, "opening the key log %s: %s", key_log, strerror(errno));
        }
        SSL_CTX_set_keylog_callback(made, log_key);
    }
    return made;
}

static int choose(SSL *ssl, const uint8_t **out, uint8_t *length, const uint8_t *offered, unsigned all, void *of) {
    (void)ssl, (void)of;
    for (unsigned at = 0; at < all; at += 1U + offered[at]) {
        if (offered[at] == 2 && at + 2 < all && memcmp(offered + at + 1, "h3", 2) == 0) {
            *out = offered + at + 1;
            *length = 2;
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

SSL_CTX *tls_server(const struct server_spec *spec) {
    SSL_CTX *made = context(spec->key_log);
    if (SSL_CTX_use_certificate_chain_file(made, spec->certificate) != 1) {
        fail(OTHER, "reading the certificate %s: %s", spec->certificate, why());
    }
    if (SSL_CTX_use_PrivateKey_file(made, spec->key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(made) != 1) {
        fail(OTHER, "reading the key %s: %s", spec->key, why());
    }
    SSL_CTX_set_alpn_select_cb(made, choose, NULL);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);  // tickets hold the whole state
    if (!spec->resumes && !spec->early) {
        SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
    }
    SSL_CTX_set_early_data_enabled(made, spec->early);
    return made;
}

// Verifies the requested name or address.
static void expect(SSL_CTX *made, const char *name) {
    X509_VERIFY_PARAM *parameters = SSL_CTX_get0_param(made);
    if (X509_VERIFY_PARAM_set1_ip_asc(parameters, name) != 1 && X509_VERIFY_PARAM_set1_host(parameters, name, strlen(name)) != 1) {
        fail(OTHER, "BoringSSL verifies no name \"%s\"", name);
    }
    ERR_clear_error();
}

SSL_CTX *tls_client(const struct spec *spec, void (*hear)(const SSL *, int, int), int (*keep)(SSL *, SSL_SESSION *)) {
    SSL_CTX *made = context(spec->key_log);
    const char *anchor = spec->trust_anchor ? spec->trust_anchor : SYSTEM_ANCHOR;
    if (spec->verify) {
        SSL_CTX_set_verify(made, SSL_VERIFY_PEER, NULL);
        expect(made, spec->server_name);
        if (SSL_CTX_load_verify_locations(made, anchor, NULL) != 1) {
            fail(OTHER, "reading the authorities %s: %s", anchor, why());
        }
    }
    SSL_CTX_set_info_callback(made, hear);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    if (spec->resumes) {
        SSL_CTX_sess_set_new_cb(made, keep);
    }
    SSL_CTX_set_early_data_enabled(made, spec->early);
    return made;
}

bool tls_is_h3(const SSL *ssl) {
    const uint8_t *name = NULL;
    unsigned length = 0;
    SSL_get0_alpn_selected(ssl, &name, &length);
    return length == 2 && memcmp(name, "h3", 2) == 0;
}

void tls_report(const SSL *ssl, json_object *configured) {
    json_object_object_add(configured, "alpn", json_object_new_string("h3"));
    const SSL_CIPHER *cipher = SSL_get_current_cipher(ssl);
    if (cipher) {
        json_object_object_add(configured, "cipher", json_object_new_string(SSL_CIPHER_standard_name(cipher)));
    }
    const char *group = SSL_get_group_name(SSL_get_group_id(ssl));
    if (group) {
        json_object_object_add(configured, "group", json_object_new_string(group));
    }
    const STACK_OF(CRYPTO_BUFFER) *chain = SSL_get0_peer_certificates(ssl);
    uint64_t bytes = 0;
    for (size_t i = 0; chain && i < sk_CRYPTO_BUFFER_num(chain); i++) {
        bytes += CRYPTO_BUFFER_len(sk_CRYPTO_BUFFER_value(chain, i));
    }
    if (bytes) {
        json_object_object_add(configured, "certificate_chain_bytes", json_object_new_uint64(bytes));
    }
}
