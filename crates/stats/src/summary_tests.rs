use hdrhistogram::serialization::{Serializer, V2Serializer};
use wirelab_model::outcome::ErrorKind;

use super::*;
use crate::METRICS;

/// A request on a connection of its own: intended at `start`, started 1 µs later, done `service` after that.
fn request(start: u64, service: u64) -> Sample {
    let begun = start + 1000;
    Sample {
        intended_ns: start,
        start_ns: begun,
        connected_ns: Some(begun + service / 8),
        handshake_ns: Some(begun + service / 4),
        first_byte_ns: Some(begun + service / 2),
        last_byte_ns: begun + service,
        request: None,
        bytes_out: 100,
        bytes_in: 900,
        status: Some(200),
        connection: 0,
        handshake: Some(Handshake::Full),
        error: None,
    }
}

fn failed(start: u64, after: u64) -> Sample {
    Sample { error: Some(ErrorKind::Timeout), first_byte_ns: None, bytes_in: 10, ..request(start, after) }
}

#[track_caller]
fn check(values: &Values, metric: &str, expected: f64) {
    assert_eq!(values[metric], Value::Measured(expected), "{metric}");
}

#[track_caller]
fn check_missing(values: &Values, metric: &str, reason: &str) {
    assert_eq!(values[metric].reason().as_deref(), Some(reason), "{metric}");
}

#[test]
fn every_metric_comes_from_the_time_it_is_named_after() {
    let samples: Vec<_> = (1..=1000).map(|i| request(i * 10_000, i * 8000)).collect();
    let values = summarise(&samples, 2_000_000_000);
    check(&values, "response_median", 500.0 * 8000.0 + 1000.0);
    check(&values, "response_p90", 900.0 * 8000.0 + 1000.0);
    check(&values, "response_p99", 990.0 * 8000.0 + 1000.0);
    check(&values, "response_p999", 999.0 * 8000.0 + 1000.0);
    check(&values, "response_mean", 500.5 * 8000.0 + 1000.0);
    check(&values, "response_min", 9000.0);
    check(&values, "response_max", 8_001_000.0);
    check(&values, "service_median", 4_000_000.0);
    check(&values, "lag_p99", 1000.0);
    check(&values, "connected_median", 500_000.0);
    check(&values, "handshake_median", 1_000_000.0);
    check(&values, "first_byte_median", 2_000_000.0);
    check(&values, "request_rate", 500.0);
    check(&values, "goodput", 1000.0 * 1000.0 * 8.0 / 2.0);
    check(&values, "requests", 1000.0);
    check(&values, "error_share", 0.0);
    check(&values, "resumed_share", 0.0);
    check_missing(&values, "failure_median", "no request failed");
    assert!(values.keys().map(String::as_str).eq(METRICS.iter().map(|metric| metric.name)));
}

/// A server that stops for one second in five, with 50 µs otherwise and one request at a time.
#[test]
fn stalls_that_no_percentile_shows_have_a_share_of_the_time() {
    let mut samples: Vec<_> = (0..160_000).map(|i| request(i * 50_000, 50_000)).collect();
    samples.extend([request(8_000_000_000, 1_000_000_000), request(9_000_000_000, 1_000_000_000)]);
    let mut one_fails = samples.clone();
    one_fails[160_000] = failed(8_000_000_000, 1_000_000_000);
    for values in [summarise(&samples, 10_000_000_000), summarise(&one_fails, 10_000_000_000), quantised(&samples)] {
        let Value::Measured(share) = values["stalled_share"] else { panic!("{values:?}") };
        assert!((share - 0.2).abs() < 0.001, "{share}");
        assert!(values["response_p99"].number().unwrap() < 52_000.0, "{values:?}");
    }
    let calm = summarise(&samples[..1000], 50_000_000)["stalled_share"].number();
    assert!(calm.is_some_and(|share| share == 0.0 && share.is_sign_positive()), "{calm:?}");
    check_missing(&summarise(&samples[..99], 1), "stalled_share", "only 99 requests; a P99 needs 100");
}

#[test]
fn a_percentile_of_too_few_requests_is_missing_with_a_reason() {
    let samples: Vec<_> = (1..=40).map(|i| request(i * 10_000, 8000)).collect();
    let values = summarise(&samples, 1_000_000_000);
    check_missing(&values, "response_p99", "only 40 requests; a P99 needs 100");
    check_missing(&values, "response_p999", "only 40 requests; a P99.9 needs 1000");
    check(&values, "response_p90", 9000.0);
    check_missing(&summarise(&samples[..9], 1), "response_p90", "only 9 requests; a P90 needs 10");
    check_missing(&summarise(&samples[..1], 1), "response_p90", "only 1 request; a P90 needs 10");
}

#[test]
fn failed_requests_count_as_failures_only() {
    let samples = [request(0, 8000), failed(10, 5_000_000), request(20, 8000), failed(30, 7_000_000)];
    let values = summarise(&samples, 1_000_000_000);
    check(&values, "response_max", 9000.0);
    check(&values, "failure_median", 5_001_000.0);
    check(&values, "goodput", 2.0 * 1000.0 * 8.0);
    check(&values, "error_share", 0.5);
}

/// 75 successes of 1 to 75 µs (and 1 µs of lag each) and 25 failures.
fn a_quarter_fails() -> Vec<Sample> {
    (0..100).map(|i| if i % 4 == 3 { failed(i, 10) } else { request(i, 1000 * (i - i / 4 + 1)) }).collect()
}

#[test]
fn a_failed_request_ranks_as_slower_than_every_success() {
    let samples = a_quarter_fails();
    let infinite = Value::Infinite { infinite: "25 of 100 requests failed".to_owned() };
    for values in [summarise(&samples, 1_000_000_000), quantised(&samples)] {
        // The 50th of 100, not the 38th of 75.
        let median = values["response_median"].number().unwrap();
        assert!((median - 51_000.0).abs() <= 51.0, "{median}");
        assert_eq!((&values["response_p90"], &values["response_p99"]), (&infinite, &infinite));
    }
}

#[test]
fn without_a_success_no_time_and_no_rate_is_zero() {
    let values = summarise(&[failed(0, 1000)], 1_000_000_000);
    for metric in ["response_min", "response_mean", "request_rate", "goodput", "first_byte_median"] {
        check_missing(&values, metric, "no request succeeded");
    }
    assert_eq!(values["response_median"], Value::Infinite { infinite: "1 of 1 requests failed".to_owned() });
    check_missing(&summarise(&[], 1_000_000_000), "response_median", "no request succeeded");
    check(&values, "requests", 0.0);
    check(&values, "error_share", 1.0);
    check_missing(&summarise(&[], 1_000_000_000), "error_share", "no request was made");
}

#[test]
fn resumption_is_a_share_of_handshakes_and_not_of_requests() {
    let with = |handshake| Sample { handshake, ..request(0, 8000) };
    let samples = [
        with(Some(Handshake::Full)),
        with(Some(Handshake::Resumed)),
        with(Some(Handshake::EarlyAccepted)),
        with(Some(Handshake::EarlyRejected)),
        with(None),
    ];
    let values = summarise(&samples, 1);
    check(&values, "resumed_share", 0.5);
    check(&values, "early_share", 0.25);
    check_missing(
        &summarise(&[with(None)], 1),
        "early_share",
        "no TLS or QUIC handshake happened in the measured window",
    );
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = hdrhistogram::Histogram::<u64>::new(3).unwrap();
    for value in values {
        histogram.record(*value).unwrap();
    }
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&histogram, &mut bytes).unwrap();
    Histogram {
        v2: BASE64_STANDARD.encode(bytes),
        count: values.len() as u64,
        min_ns: *values.iter().min().unwrap(),
        max_ns: *values.iter().max().unwrap(),
        sum_ns: values.iter().sum(),
    }
}

fn histograms(samples: &[Sample]) -> Histograms {
    let of = |time: fn(&Sample) -> u64| histogram(&samples.iter().map(time).collect::<Vec<_>>());
    Histograms {
        response: of(Sample::response_ns),
        service: of(Sample::service_ns),
        lag: of(Sample::lag_ns),
        handshake: of(|sample| sample.handshake_ns.unwrap() - sample.start_ns),
        first_byte: of(|sample| sample.first_byte_ns.unwrap() - sample.start_ns),
        failure: Histogram::default(),
        requests: samples.len() as u64,
        errors: [].into(),
        bytes_in: 900 * samples.len() as u64,
        bytes_out: 100 * samples.len() as u64,
        connections: samples.len() as u64,
        handshakes: [(Handshake::Full, samples.len() as u64)].into(),
    }
}

fn quantised(samples: &[Sample]) -> Values {
    let succeeded: Vec<_> = samples.iter().filter(|sample| sample.is_ok()).cloned().collect();
    let failed = (samples.len() - succeeded.len()) as u64;
    let histograms = Histograms { errors: [(ErrorKind::Timeout, failed)].into(), ..histograms(&succeeded) };
    summarise_histograms(&histograms, 1_000_000_000).unwrap()
}

#[test]
fn histograms_agree_with_samples_within_a_thousandth() {
    let samples: Vec<_> = (1..=2000).map(|i| request(i * 10_000, i * i * 37)).collect();
    let exact = summarise(&samples, 3_000_000_000);
    let quantised = summarise_histograms(&histograms(&samples), 3_000_000_000).unwrap();
    for (metric, value) in &exact {
        match (value.number(), quantised[metric].number()) {
            (Some(a), Some(b)) => assert!((a - b).abs() <= a * 0.001, "{metric}: {a} and {b}"),
            (Some(_), None) => assert_eq!(metric, "connected_median"),
            (None, other) => assert_eq!(other, None, "{metric}"),
        }
    }
    for metric in ["response_min", "response_max", "response_mean", "goodput"] {
        assert_eq!(exact[metric], quantised[metric], "{metric} is exact");
    }
}

#[test]
fn a_histogram_that_contradicts_itself_is_refused() {
    let samples: Vec<_> = (1..=20).map(|i| request(i * 10_000, 8000)).collect();
    let good = histograms(&samples);
    let refused = |change: fn(&mut Histograms)| {
        let mut bad = good.clone();
        change(&mut bad);
        summarise_histograms(&bad, 1).unwrap_err().to_string()
    };
    assert!(refused(|h| h.requests = 21).contains("21 successful requests"));
    assert!(refused(|h| h.lag.count = 7).contains("`lag` is unusable: it holds 20 values, but says 7"));
    assert!(refused(|h| h.service.v2 = "AAAA".to_owned()).contains("V2"));
    assert!(refused(|h| h.service.v2 = "?".to_owned()).contains("base64"));
    // A header that says 3 GB.
    assert!(refused(|h| h.service.v2.replace_range(4..8, "E7AA")).contains("after its header, which says 295"));
}
