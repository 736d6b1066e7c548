// OpenSSL's TLS 1.3, which ngtcp2 carries in QUIC's handshake.
#ifndef TLS_H
#define TLS_H

#include <json-c/json.h>
#include <openssl/ssl.h>
#include <stdbool.h>

#include "spec.h"

// A server's, of PEM files. `early` implies `resumes`.
SSL_CTX *tls_server(const char *certificate, const char *key, const char *key_log, bool resumes, bool early);
// A client's. `keep` is given every ticket that comes; whether it takes it over.
SSL_CTX *tls_client(const struct spec *spec, int (*keep)(SSL *ssl, SSL_SESSION *ticket));
// Whether HTTP/3 was negotiated.
bool tls_is_h3(const SSL *ssl);
// The negotiated values.
void tls_report(const SSL *ssl, json_object *configured);

#endif
