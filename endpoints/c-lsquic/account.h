// The transport's counts of connections, added up.
#ifndef ACCOUNT_H
#define ACCOUNT_H

#include <json-c/json.h>
#include <lsquic.h>

// A connection that is about to end.
void account_add(lsquic_conn_t *connection);
// A connection ended without counts: then the report is absent.
void account_miss(void);
// For `done`; a new reference, or NULL.
json_object *account_report(void);

#endif
