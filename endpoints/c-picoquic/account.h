// The transport's counts of connections, added up.
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include "quic.h"

// A connection that is about to end.
void account_add(picoquic_cnx_t *connection);
// For `done`; a new reference.
json_object *account_report(void);

#endif
