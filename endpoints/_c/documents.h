// The documents below the document root, read into memory before the server is ready: the measurement is of the
// protocol, and since only paths that were seen are known, no path leads out of the root.
#ifndef DOCUMENTS_H
#define DOCUMENTS_H

#include <stdint.h>

struct document {
    char *path;  // from the root, with a leading slash
    uint8_t *bytes;
    uint64_t size;
};

void documents_load(const char *root);
// NULL: none.
const struct document *documents_find(const char *path);

#endif
