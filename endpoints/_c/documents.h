// The documents below the document root, read into memory before the server says that it is ready: what is measured is the
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
// NULL: there is none.
const struct document *documents_find(const char *path);

#endif
