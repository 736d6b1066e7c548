#include "tls.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "contract.h"

static int keys = -1;

// As every endpoint, so that compared cells do not differ in them.
static const char SUITES[] = "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256";
static const char GROUP[] = "X25519";

static const char *why(void) {
    const char *reason = ERR_reason_error_string(ERR_get_error());
    return reason ? reason : "no reason given";
}

static void log_key(const SSL *ssl, const char *line) {
    (void)ssl;
    char whole[512];
    int length = snprintf(whole, sizeof whole, "%s\n", line);
    if (length < (int)sizeof whole && write(keys, whole, (size_t)length) != length) {
        fail(OTHER, "writing the key log: %s", strerror(errno));
    }
}

static SSL_CTX *context(const SSL_METHOD *method, const char *key_log) {
    SSL_CTX *made = SSL_CTX_new(method);
    if (!made || SSL_CTX_set_min_proto_version(made, TLS1_3_VERSION) != 1 || SSL_CTX_set_ciphersuites(made, SUITES) != 1 ||
        SSL_CTX_set1_groups_list(made, GROUP) != 1) {
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

static int choose(SSL *ssl, const unsigned char **out, unsigned char *length, const unsigned char *offered, unsigned all, void *of) {
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

SSL_CTX *tls_server(const char *certificate, const char *key, const char *key_log, bool resumes, bool early) {
    SSL_CTX *made = context(TLS_server_method(), key_log);
    if (SSL_CTX_use_certificate_chain_file(made, certificate) != 1) {
        fail(OTHER, "reading the certificate %s: %s", certificate, why());
    }
    if (SSL_CTX_use_PrivateKey_file(made, key, SSL_FILETYPE_PEM) != 1 || SSL_CTX_check_private_key(made) != 1) {
        fail(OTHER, "reading the key %s: %s", key, why());
    }
    SSL_CTX_set_alpn_select_cb(made, choose, NULL);
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_OFF);  // tickets hold the whole state
    SSL_CTX_set_session_id_context(made, (const unsigned char *)ENDPOINT, sizeof ENDPOINT - 1);
    // OpenSSL's protection against replays keeps every ticket until it was used, once; here many connections begin with one.
    SSL_CTX_set_options(made, SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_NO_ANTI_REPLAY);
    if (!resumes && !early) {
        SSL_CTX_set_options(made, SSL_OP_NO_TICKET);
        SSL_CTX_set_num_tickets(made, 0);
    }
    // In QUIC there is no other number (RFC 9001, section 4.6.1).
    SSL_CTX_set_max_early_data(made, early ? UINT32_MAX : 0);
    return made;
}

SSL_CTX *tls_client(const struct spec *spec, int (*keep)(SSL *ssl, SSL_SESSION *ticket)) {
    SSL_CTX *made = context(TLS_client_method(), spec->key_log);
    if (spec->verify) {
        SSL_CTX_set_verify(made, SSL_VERIFY_PEER, NULL);
        int read = spec->trust_anchor ? SSL_CTX_load_verify_locations(made, spec->trust_anchor, NULL)
                                      : SSL_CTX_load_verify_locations(made, "/etc/ssl/certs/ca-certificates.crt", NULL);
        if (read != 1) {
            fail(OTHER, "reading the authorities %s: %s", spec->trust_anchor ? spec->trust_anchor : "of the system", why());
        }
    }
    SSL_CTX_set_session_cache_mode(made, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
    if (spec->resumes) {
        SSL_CTX_sess_set_new_cb(made, keep);
    }
    return made;
}

bool tls_is_h3(const SSL *ssl) {
    const unsigned char *name = NULL;
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
    const char *group = SSL_get0_group_name((SSL *)ssl);
    if (group) {
        // Its IANA name, as in the other endpoints.
        json_object_object_add(configured, "group", json_object_new_string(strcasecmp(group, GROUP) == 0 ? GROUP : group));
    }
    int64_t bytes = 0;
    STACK_OF(X509) *chain = SSL_get_peer_cert_chain(ssl);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        bytes += i2d_X509(sk_X509_value(chain, i), NULL);
    }
    if (bytes) {
        json_object_object_add(configured, "certificate_chain_bytes", json_object_new_int64(bytes));
    }
}
