#include "account.h"

#include <stdbool.h>
#include <stdint.h>

static struct { uint64_t connections, heard, shortest, round_trips, sent, lost, window; } transport;
static bool missed;

void account_add(lsquic_conn_t *connection) {
    struct lsquic_conn_info is;
    if (lsquic_conn_get_info(connection, &is) != 0) {
        missed = true;
        return;
    }
    // In microseconds; 0: no sample yet.
    if (is.lci_rtt_min) {
        uint64_t shortest = is.lci_rtt_min * 1000ULL;
        transport.shortest = transport.heard && transport.shortest < shortest ? transport.shortest : shortest;
        transport.round_trips += is.lci_rtt * 1000ULL;
        transport.heard++;
    }
    transport.sent += is.lci_pkts_sent;
    transport.lost += is.lci_pkts_lost;
    transport.window = transport.window > is.lci_cwnd ? transport.window : is.lci_cwnd;
    transport.connections++;
}

void account_miss(void) {
    missed = true;
}

json_object *account_report(void) {
    if (missed) {
        return NULL;
    }
    json_object *facts = json_object_new_object();
    json_object_object_add(facts, "connections", json_object_new_uint64(transport.connections));
    if (transport.heard) {
        json_object_object_add(facts, "round_trip_min_ns", json_object_new_uint64(transport.shortest));
        json_object_object_add(facts, "round_trip_ns", json_object_new_uint64(transport.round_trips / transport.heard));
    }
    // A build without statistics counts none.
    if (transport.sent) {
        json_object_object_add(facts, "packets_sent", json_object_new_uint64(transport.sent));
        json_object_object_add(facts, "packets_lost", json_object_new_uint64(transport.lost));
    }
    if (transport.connections) {
        json_object_object_add(facts, "congestion_window", json_object_new_uint64(transport.window));
    }
    return facts;
}
