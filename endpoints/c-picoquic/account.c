#include "account.h"

static struct { uint64_t connections, shortest, round_trips, sent, lost, window; } transport;

void account_add(picoquic_cnx_t *cnx) {
    picoquic_path_quality_t q;
    picoquic_get_default_path_quality(cnx, &q);
    uint64_t shortest = q.rtt_min * 1000;
    transport.shortest = transport.connections && transport.shortest < shortest ? transport.shortest : shortest;
    transport.round_trips += q.rtt * 1000;
    transport.sent += q.sent;
    transport.lost += q.lost;
    transport.window = transport.window > q.cwin ? transport.window : q.cwin;
    transport.connections++;
}

json_object *account_report(void) {
    json_object *facts = json_object_new_object();
    json_object_object_add(facts, "connections", json_object_new_uint64(transport.connections));
    if (transport.connections) {
        json_object_object_add(facts, "round_trip_min_ns", json_object_new_uint64(transport.shortest));
        json_object_object_add(facts, "round_trip_ns", json_object_new_uint64(transport.round_trips / transport.connections));
        json_object_object_add(facts, "packets_sent", json_object_new_uint64(transport.sent));
        json_object_object_add(facts, "packets_lost", json_object_new_uint64(transport.lost));
        json_object_object_add(facts, "congestion_window", json_object_new_uint64(transport.window));
    }
    return facts;
}
