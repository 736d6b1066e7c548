// The connections' counts of their transport, summed up.
#ifndef ACCOUNTS_H
#define ACCOUNTS_H

#include <json-c/json.h>
#include <ngtcp2/ngtcp2.h>
#include <stdbool.h>

struct accounts {
    uint64_t connections, heard, round_trips, round_trip_min, window, sent, lost, bytes_lost;
};

// Adds a connection's counts, less `before`; NULL: nothing.
void accounts_add(struct accounts *accounts, const ngtcp2_conn_info *is, const ngtcp2_conn_info *before);
void accounts_merge(struct accounts *accounts, const struct accounts *other);
// In the contract's form.
json_object *accounts_report(const struct accounts *accounts);

#endif
