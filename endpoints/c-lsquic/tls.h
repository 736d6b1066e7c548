// TLS settings and results: BoringSSL, by the contexts that lsquic's connections begin with.
#ifndef TLS_H
#define TLS_H

#include <json-c/json.h>
#include <openssl/ssl.h>

#include "server_spec.h"
#include "spec.h"

SSL_CTX *tls_server(const struct server_spec *spec);
// `hear` gets completed handshakes and alerts, `keep` gets tickets.
SSL_CTX *tls_client(const struct spec *spec, void (*hear)(const SSL *ssl, int where, int value), int (*keep)(SSL *, SSL_SESSION *));
bool tls_is_h3(const SSL *ssl);
// Adds what a connection negotiated.
void tls_report(const SSL *ssl, json_object *configured);

#endif
