#include "failure.h"

#include <errno.h>
#include <stdio.h>

// Errors of TLS are its alerts (RFC 9001, section 4.8; RFC 8446, section 6); and those of QUIC (RFC 9000, section 20.1).
enum { FIRST_ALERT = 0x100, LAST_ALERT = 0x1ff, FIRST_CERTIFICATE = 42, LAST_CERTIFICATE = 46, UNKNOWN_CA = 48, NO_ALPN = 120 };
enum { NO_ERROR = 0, CONNECTION_REFUSED = 2 };

static enum kind by_alert(uint64_t alert) {
    if ((alert >= FIRST_CERTIFICATE && alert <= LAST_CERTIFICATE) || alert == UNKNOWN_CA) {
        return CERTIFICATE;
    }
    return alert == NO_ALPN ? PROTOCOL : TLS;
}

static enum kind by_code(uint64_t code) {
    if (code >= FIRST_ALERT && code <= LAST_ALERT) {
        return by_alert(code - FIRST_ALERT);
    }
    return code == NO_ERROR ? RESET : code == CONNECTION_REFUSED ? REFUSED : PROTOCOL;
}

enum kind failure_of(const struct connection *connection, const char **why) {
    static char text[300], reason[200];
    *why = text;
    if (connection->alert) {
        snprintf(text, sizeof text, "the handshake failed with the alert %d of TLS", connection->alert);
        return by_alert((uint64_t)connection->alert);
    }
    if (connection->closed) {
        snprintf(text, sizeof text, "the server closed the connection with the code 0x%llx of %s",
                 (unsigned long long)connection->code, connection->of_http ? "HTTP/3" : "QUIC");
        return connection->of_http ? RESET : by_code(connection->code);
    }
    enum LSQUIC_CONN_STATUS status = lsquic_conn_status(connection->cnx, reason, sizeof reason);
    snprintf(text, sizeof text, "the connection was lost: %s", *reason ? reason : "lsquic gives no reason");
    switch (status) {
    case LSCONN_ST_TIMED_OUT:
        return TIMEOUT;
    case LSCONN_ST_RESET:
    case LSCONN_ST_CLOSED:
    case LSCONN_ST_GOING_AWAY:
    case LSCONN_ST_PEER_GOING_AWAY:
        return RESET;
    default:
        return PROTOCOL;
    }
}

enum kind failure_of_kernel(const struct connection *connection, const char **why) {
    if (connection->gate.port.noted != ECONNREFUSED) {
        *why = "no way leads to the server";
        return UNREACHABLE;
    }
    *why = connection->ready ? "nothing listens there any more (ICMP port unreachable)"
                             : "nothing listens there (ICMP port unreachable)";
    return connection->ready ? RESET : REFUSED;
}
