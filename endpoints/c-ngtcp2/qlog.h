// A qlog file for each connection, where they are asked for.
#ifndef QLOG_H
#define QLOG_H

#include "quic.h"

void qlog_begin(struct quic *quic, ngtcp2_settings *settings);

#endif
