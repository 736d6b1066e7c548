use wirelab_model::outcome::ErrorKind;
use wirelab_model::timeline::{ActionRecord, ServerRecord};

use super::*;

const MS: u64 = 1_000_000;

fn timeline() -> Timeline {
    serde_json::from_value(serde_json::json!({
        "actions": [
            { "name": "T2", "at": "50 %", "servers": "3 far" },
            { "name": "T3", "at": "90 %", "restart": "clients" },
        ],
        "windows": { "before": { "to": "T2" }, "after": { "from": "T2" }, "all": {} },
    }))
    .unwrap()
}

/// Two servers that answer ten requests in 100 ms each, and a third one from 1 s on, which gets its first requests
/// after `delay` readings. The window has two seconds, T2 is at 1 s, T3 at 1.8 s.
fn played(delay: u64) -> TimelineRecord {
    let action =
        |name: &str, ms| ActionRecord { name: name.to_owned(), due_ns: ms * MS, began_ns: ms * MS, took_ns: 0 };
    let server = |from| ServerRecord { from_ns: Some(from), until_ns: None };
    TimelineRecord {
        actions: vec![action("T2", 1000), action("T3", 1800)],
        servers: vec![server(0), server(0), server(1000 * MS)],
        answered: (0..=20)
            .map(|n| Answered {
                at_ns: n * 100 * MS,
                requests: vec![n * 10, n * 10, n.saturating_sub(10 + delay) * 10],
            })
            .collect(),
        ..TimelineRecord::default()
    }
}

fn sample(end_ms: u64, response_ms: u64, ok: bool) -> Sample {
    let start_ns = (end_ms - response_ms) * MS;
    Sample {
        intended_ns: start_ns,
        start_ns,
        connected_ns: None,
        handshake_ns: None,
        first_byte_ns: ok.then_some(end_ms * MS),
        last_byte_ns: end_ms * MS,
        request: None,
        bytes_out: 0,
        bytes_in: 0,
        status: None,
        connection: 0,
        handshake: None,
        error: (!ok).then_some(ErrorKind::Reset),
    }
}

fn number(values: &Values, name: &str) -> Option<f64> {
    values[name].number()
}

#[test]
fn every_metric_has_a_value_or_a_reason_and_its_name() {
    let (timeline, samples) = (timeline(), [sample(10, 5, true)]);
    let values = values(&timeline, &played(0), &samples, 2000 * MS);
    let declared: Vec<_> = metrics(&timeline).iter().map(|metric| metric.name).collect();
    assert_eq!(values.keys().map(String::as_str).collect::<Vec<_>>(), declared);
    assert!(metrics(&timeline).iter().all(|metric| metric.meaning.ends_with('.')));
}

#[test]
fn servers_are_compared_by_their_answers_while_reachable() {
    let values = values(&timeline(), &played(0), &[], 2000 * MS);
    // Two servers, 100 each.
    assert_eq!(number(&values, "server_fairness@before"), Some(1.0));
    assert_eq!(number(&values, "server_deviation@before"), Some(0.0));
    assert_eq!(number(&values, "server_smallest@before"), Some(0.5));
    // Three, 200, 200 and 100: numpy.std([200, 200, 100]) == 47.14045207910317; 500² / (3 * 90000) ==
    // 0.9259259259259259
    assert!((number(&values, "server_deviation@all").unwrap() - 47.140_452_079_103_17).abs() < 1e-9);
    assert!((number(&values, "server_fairness@all").unwrap() - 0.925_925_925_925_925_9).abs() < 1e-12);
    assert_eq!(number(&values, "server_newest@all"), Some(0.2));
    assert_eq!(number(&values, "server_largest@all"), Some(0.4));
}

#[test]
fn answers_of_a_drained_server_are_a_share_of_their_own() {
    let mut played = played(0);
    // From T2 on the first of three servers is unreachable for new connections, and answers a third of all requests.
    played.servers[0].until_ns = Some(1000 * MS);
    let values = values(&timeline(), &played, &[], 2000 * MS);
    assert_eq!(number(&values, "server_drained@before"), Some(0.0));
    assert!((number(&values, "server_drained@after").unwrap() - 1.0 / 3.0).abs() < 1e-12);
    // The other shares cover the two remaining servers.
    assert_eq!(
        (number(&values, "server_largest@after"), number(&values, "server_newest@after")),
        (Some(0.5), Some(0.5))
    );
}

#[test]
fn requests_belong_to_the_window_in_which_they_ended() {
    let mut samples: Vec<_> = (1..=100).map(|n| sample(1000 + n, n, true)).collect();
    samples.extend([sample(500, 7, true), sample(600, 7, false), sample(2050, 9, true)]);
    let values = values(&timeline(), &played(0), &samples, 2000 * MS);
    let of = |name: &str| number(&values, name);
    assert_eq!((of("requests@before"), of("failed@before"), of("rate@before")), (Some(1.0), Some(1.0), Some(1.0)));
    assert_eq!((of("response_p50@before"), of("response_p95@before")), (Some(7.0 * MS as f64), None));
    // Requests that ended after the window are in no interval.
    assert_eq!((of("requests@after"), of("requests@all"), of("failed@after")), (Some(100.0), Some(101.0), Some(0.0)));
    let ms = |name| of(name).map(|ns| ns / MS as f64);
    assert_eq!(
        (ms("response_p50@after"), ms("response_p95@after"), ms("response_p99@after")),
        (Some(50.0), Some(95.0), Some(99.0))
    );
}

#[test]
fn the_time_to_balance_ends_where_every_half_second_is_even() {
    let at = |delay| values(&timeline(), &played(delay), &[], 2000 * MS);
    assert_eq!(number(&at(0), "balanced@T2"), Some(0.0));
    // In the half second from the action on it has 20 where the others have 50, an index of 0.889; 100 ms later 30:
    // 0.955.
    assert_eq!(number(&at(3), "balanced@T2"), Some(100.0 * MS as f64));
    assert_eq!(at(9)["balanced@T2"], Value::missing(Missing::NotBalanced));
    assert_eq!(at(0)["balanced@T3"], Value::missing(Missing::NextActionTooSoon));
}

#[test]
fn the_index_is_one_for_equal_servers_and_one_in_n_if_one_has_all() {
    assert_eq!(jain(&[7.0, 7.0, 7.0, 7.0]), 1.0);
    assert_eq!(jain(&[9.0, 0.0, 0.0]), 1.0 / 3.0);
    assert_eq!(jain(&[0.0, 0.0]), 0.0);
}

#[test]
fn the_course_has_every_request_of_the_window_once() {
    let samples: Vec<_> = (1..=60).map(|n| sample(n * 10, 3, n % 4 != 0)).collect();
    let intervals = intervals(&samples, 600 * MS);
    assert_eq!(intervals.len(), 60);
    // The last one ended with the window.
    assert_eq!(
        intervals.iter().map(|one| (one.requests, one.failed)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)),
        (45, 14)
    );
    assert_eq!(intervals[1].percentiles, [Some(3 * MS), None, None]);
}
