// Packets in and out.
#ifndef PACKETS_H
#define PACKETS_H

#include "quic.h"

void packets_prepare(const struct stack_settings *settings);
void packets_finish(void);

#endif
