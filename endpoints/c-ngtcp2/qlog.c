#include "qlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "contract.h"

static void put(void *of, uint32_t flags, const void *text, size_t length) {
    (void)flags;
    struct quic *quic = of;
    if (length && write(quic->qlog, text, length) != (ssize_t)length) {
        fail(OTHER, "writing qlog: %s", strerror(errno));
    }
}

void qlog_begin(struct quic *quic, ngtcp2_settings *settings) {
    static _Atomic unsigned number;
    if (!quic->party->qlog_dir) {
        return;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/%s-%u.sqlog", quic->party->qlog_dir, quic->party->server ? "server" : "client",
             atomic_fetch_add(&number, 1));
    quic->qlog = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (quic->qlog < 0) {
        fail(OTHER, "opening the qlog file %s: %s", path, strerror(errno));
    }
    settings->qlog_write = put;
}
