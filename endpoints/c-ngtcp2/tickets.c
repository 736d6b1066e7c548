#include "tickets.h"

#include <string.h>

enum { MOST = 1024 };

static struct ticket kept[MOST];
static size_t count;

void tickets_keep(const struct ticket *ticket) {
    if (count == MOST) {
        SSL_SESSION_free(kept[0].session);
        memmove(kept, kept + 1, --count * sizeof *kept);
    }
    kept[count++] = *ticket;
}

struct ticket tickets_take(void) {
    if (!count) {
        return (struct ticket){0};
    }
    if (count == 1) {
        // A copy: OpenSSL takes a session of TLS 1.3 that was used for used up.
        struct ticket copy = kept[0];
        copy.session = SSL_SESSION_dup(kept[0].session);
        return copy;
    }
    return kept[--count];
}

bool tickets_any(void) {
    return count > 0;
}
