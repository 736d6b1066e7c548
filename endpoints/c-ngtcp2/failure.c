#include "failure.h"

#include <errno.h>
#include <openssl/x509_vfy.h>
#include <stdio.h>

// TLS alerts (RFC 8446, section 6).
enum { BAD_CERTIFICATE = 42, CERTIFICATE_UNKNOWN = 46, UNKNOWN_CA = 48, NO_APPLICATION_PROTOCOL = 120, ALERTS = 256 };

static enum kind of_alert(uint64_t alert) {
    if ((alert >= BAD_CERTIFICATE && alert <= CERTIFICATE_UNKNOWN) || alert == UNKNOWN_CA) {
        return CERTIFICATE;
    }
    return alert == NO_APPLICATION_PROTOCOL ? PROTOCOL : TLS;
}

static enum kind of_code(uint64_t code) {
    if (code >= NGTCP2_CRYPTO_ERROR && code < NGTCP2_CRYPTO_ERROR + ALERTS) {
        return of_alert(code - NGTCP2_CRYPTO_ERROR);
    }
    switch (code) {
    case NGTCP2_NO_ERROR:
        return RESET;
    case NGTCP2_CONNECTION_REFUSED:
        return REFUSED;
    default:
        return PROTOCOL;
    }
}

static enum kind of_kernel(const struct quic *quic, const char **why) {
    if (quic->port->noted != ECONNREFUSED) {
        *why = "no way leads to the server";
        return UNREACHABLE;
    }
    *why = quic->established ? "nothing listens there any more (ICMP port unreachable)" : "nothing listens there (ICMP port unreachable)";
    return quic->established ? RESET : REFUSED;
}

enum kind failure_of(const struct quic *quic, const char **why) {
    static char text[200];
    const ngtcp2_ccerr *error = &quic->error;
    if (quic->port->noted) {
        return of_kernel(quic, why);
    }
    long verified = SSL_get_verify_result(quic->ssl);
    if (!quic->established && verified != X509_V_OK && SSL_get_verify_mode(quic->ssl) != SSL_VERIFY_NONE) {
        *why = X509_verify_cert_error_string(verified);
        return CERTIFICATE;
    }
    *why = text;
    switch (error->type) {
    case NGTCP2_CCERR_TYPE_IDLE_CLOSE:
        *why = "nothing was heard of the server for the idle time-out";
        return TIMEOUT;
    case NGTCP2_CCERR_TYPE_VERSION_NEGOTIATION:
        *why = "the server does not speak QUIC version 1";
        return PROTOCOL;
    case NGTCP2_CCERR_TYPE_APPLICATION:
        snprintf(text, sizeof text, "the connection was closed with the code 0x%llx of HTTP/3", (unsigned long long)error->error_code);
        // Our own code says that the server broke the protocol.
        return ngtcp2_conn_in_closing_period2(quic->conn) ? PROTOCOL : RESET;
    default:
        snprintf(text, sizeof text, "the connection was closed with the code 0x%llx of QUIC", (unsigned long long)error->error_code);
        return of_code(error->error_code);
    }
}
