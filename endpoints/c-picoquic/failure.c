#include "failure.h"

#include <stdio.h>

// Errors of TLS are its alerts (RFC 9001, section 4.8; RFC 8446, section 6).
enum { FIRST_ALERT = 0x100, LAST_ALERT = 0x1ff, FIRST_CERTIFICATE = 42, LAST_CERTIFICATE = 46, UNKNOWN_CA = 48, NO_ALPN = 120 };

static enum kind by_alert(uint64_t alert) {
    if ((alert >= FIRST_CERTIFICATE && alert <= LAST_CERTIFICATE) || alert == UNKNOWN_CA) {
        return CERTIFICATE;
    }
    return alert == NO_ALPN ? PROTOCOL : TLS;
}

enum kind failure_of(picoquic_cnx_t *connection, picoquic_call_back_event_t event, bool ready, const char **why) {
    static char text[200];
    uint64_t local = 0, remote = 0, ours = 0, theirs = 0;
    picoquic_get_close_reasons(connection, &local, &remote, &ours, &theirs);
    snprintf(text, sizeof text, "the connection was lost: local error 0x%llx, remote 0x%llx, of the application 0x%llx",
             (unsigned long long)local, (unsigned long long)remote, (unsigned long long)theirs);
    *why = text;
    uint64_t error = local ? local : remote;
    if (local == PICOQUIC_ERROR_IDLE_TIMEOUT || local == PICOQUIC_ERROR_REPEAT_TIMEOUT ||
        local == PICOQUIC_ERROR_HANDSHAKE_TIMEOUT) {
        return TIMEOUT;
    }
    if (error >= FIRST_ALERT && error <= LAST_ALERT) {
        return by_alert(error - FIRST_ALERT);
    }
    if (event == picoquic_callback_stateless_reset || remote || theirs) {
        return ready ? RESET : TLS;
    }
    return local ? PROTOCOL : ready ? RESET : TLS;
}
