// Session tickets that came, with what the server said of its transport then.
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
// The newest, which is another one's no more, but for the last one: that is used again and again. Its session is a new reference.
struct ticket tickets_take(void);
bool tickets_any(void);

#endif
