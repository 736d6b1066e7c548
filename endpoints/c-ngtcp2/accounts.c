#include "accounts.h"

static void least_and_largest(struct accounts *a, uint64_t round_trip_min, uint64_t window) {
    if (round_trip_min && (!a->round_trip_min || round_trip_min < a->round_trip_min)) {
        a->round_trip_min = round_trip_min;
    }
    a->window = window > a->window ? window : a->window;
}

void accounts_add(struct accounts *a, const ngtcp2_conn_info *is, const ngtcp2_conn_info *before) {
    static const ngtcp2_conn_info nothing;
    before = before ? before : &nothing;
    a->connections++;
    a->sent += is->pkt_sent - before->pkt_sent;
    a->lost += is->pkt_lost - before->pkt_lost;
    a->bytes_lost += is->bytes_lost - before->bytes_lost;
    // ngtcp2's word for "no sample yet".
    bool heard = is->min_rtt != UINT64_MAX;
    if (heard) {
        a->heard++;
        a->round_trips += is->smoothed_rtt;
    }
    least_and_largest(a, heard ? is->min_rtt : 0, is->cwnd);
}

void accounts_merge(struct accounts *a, const struct accounts *other) {
    a->connections += other->connections;
    a->heard += other->heard;
    a->round_trips += other->round_trips;
    a->sent += other->sent;
    a->lost += other->lost;
    a->bytes_lost += other->bytes_lost;
    least_and_largest(a, other->round_trip_min, other->window);
}

json_object *accounts_report(const struct accounts *a) {
    json_object *report = json_object_new_object();
    json_object_object_add(report, "connections", json_object_new_uint64(a->connections));
    if (!a->connections) {
        return report;
    }
    if (a->heard) {
        json_object_object_add(report, "round_trip_min_ns", json_object_new_uint64(a->round_trip_min));
        json_object_object_add(report, "round_trip_ns", json_object_new_uint64(a->round_trips / a->heard));
    }
    json_object_object_add(report, "packets_sent", json_object_new_uint64(a->sent));
    json_object_object_add(report, "packets_lost", json_object_new_uint64(a->lost));
    json_object_object_add(report, "bytes_lost", json_object_new_uint64(a->bytes_lost));
    json_object_object_add(report, "congestion_window", json_object_new_uint64(a->window));
    return report;
}
