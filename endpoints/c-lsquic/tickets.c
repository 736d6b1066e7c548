#include "tickets.h"

#include <stdlib.h>
#include <string.h>

enum { MOST = 1024 };

static struct ticket kept[MOST], taken;
static size_t count;
static bool used;  // the only one there is

void tickets_keep(struct ticket ticket) {
    if (count == MOST || used) {
        free(kept[0].bytes);
        memmove(kept, kept + 1, --count * sizeof *kept);
    }
    used = false;
    kept[count++] = ticket;
}

struct ticket tickets_take(void) {
    if (count <= 1) {
        used = count;
        return kept[0];
    }
    free(taken.bytes);
    return taken = kept[--count];
}

bool tickets_any(void) {
    return count > 0;
}
