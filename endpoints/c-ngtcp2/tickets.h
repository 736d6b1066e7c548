// Received session tickets, with the server's transport parameters of that time.
#ifndef TICKETS_H
#define TICKETS_H

#include <openssl/ssl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ticket {
    SSL_SESSION *session;  // NULL: there is none
    uint8_t params[256];
    size_t params_length;
};

void tickets_keep(const struct ticket *ticket);
// The newest ticket, removed from the store unless it is the last one. Its session is a new reference.
struct ticket tickets_take(void);
bool tickets_any(void);

#endif
