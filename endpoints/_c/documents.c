#include "documents.h"

#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract.h"

// The most that is kept in memory.
static const uint64_t LARGEST_TOTAL = 1ULL << 30;

static struct document *all;
static size_t count;
static uint64_t total;
static char root[PATH_MAX];

static void read_whole(const char *path, struct document *document) {
    FILE *file = fopen(path, "r");
    if (!file || fread(document->bytes, 1, document->size, file) != document->size || fclose(file) != 0) {
        fail(OTHER, "reading the document %s: %s", path, strerror(errno));
    }
}

static int visit(const char *path, const struct stat *about, int kind, struct FTW *place) {
    (void)place;
    // A link counts only if it stays below the root.
    char real[PATH_MAX];
    struct stat target;
    if (kind == FTW_SL && realpath(path, real) && strncmp(real, root, strlen(root)) == 0 && real[strlen(root)] == '/' &&
        stat(real, &target) == 0) {
        about = &target;
    } else if (kind != FTW_F) {
        return 0;
    }
    if (!S_ISREG(about->st_mode)) {
        return 0;
    }
    total += (uint64_t)about->st_size;
    if (total > LARGEST_TOTAL) {
        refuse("spec: `document_root` %s holds more than 1 GiB, the most that this server keeps in memory", root);
    }
    all = realloc(all, (count + 1) * sizeof *all);
    if (!all) {
        fail(OTHER, "no memory for another document");
    }
    struct document *document = &all[count++];
    *document = (struct document){strdup(path + strlen(root)), allocate(1, (uint64_t)about->st_size), (uint64_t)about->st_size};
    read_whole(path, document);
    return 0;
}

static int by_path(const void *a, const void *b) {
    return strcmp(((const struct document *)a)->path, ((const struct document *)b)->path);
}

void documents_load(const char *below) {
    enum { FOLDERS_OPEN = 16 };
    if (!realpath(below, root) || nftw(root, visit, FOLDERS_OPEN, FTW_PHYS) != 0) {
        fail(OTHER, "reading the document root %s: %s", below, strerror(errno));
    }
    if (count) {
        qsort(all, count, sizeof *all, by_path);
    }
}

const struct document *documents_find(const char *path) {
    const struct document wanted = {.path = (char *)path};
    return count ? bsearch(&wanted, all, count, sizeof *all, by_path) : NULL;
}
