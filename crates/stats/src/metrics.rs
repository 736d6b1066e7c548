//! The metrics from a client's records.

use wirelab_model::metric::{Better, Metric, Side, Unit};

const CLOCK: &str = "the client's own monotonic clock";
const COUNT: &str = "the client's own records";

/// A time on the client's clock; lower is better.
const fn time(name: &'static str, title: &'static str, meaning: &'static str) -> Metric {
    let (unit, side, better) = (Unit::Nanoseconds, Side::Client, Better::Lower);
    Metric { name, title, unit, side, vantage: CLOCK, better, meaning }
}

/// A count of the client's records.
const fn count(name: &'static str, title: &'static str, unit: Unit, better: Better, meaning: &'static str) -> Metric {
    Metric { name, title, unit, side: Side::Client, vantage: COUNT, better, meaning }
}

/// Every metric that [`crate::summarise`] produces, in its order.
pub static METRICS: &[Metric] = &[
    time(
        "response_median",
        "Response time, median",
        "From the intended start of a request to the last byte of its response; a failed request ranks as slower than every success.",
    ),
    time(
        "response_p90",
        "Response time, P90",
        "The response time that nine in ten requests did not exceed (nearest rank); a failed request ranks as slower than every success.",
    ),
    time(
        "response_p99",
        "Response time, P99",
        "The response time that 99 in 100 requests did not exceed (nearest rank); a failed request ranks as slower than every success.",
    ),
    time(
        "response_p999",
        "Response time, P99.9",
        "The response time that 999 in 1000 requests did not exceed (nearest rank); a failed request ranks as slower than every success.",
    ),
    time("response_mean", "Response time, mean", "The arithmetic mean of the response times of successful requests."),
    time("response_min", "Response time, smallest", "The exact smallest response time of a successful request."),
    time("response_max", "Response time, largest", "The exact largest response time of a successful request."),
    time(
        "response_iqr",
        "Response time, interquartile range",
        "The third quartile of the response times of successful requests minus the first (nearest rank).",
    ),
    time(
        "total_time",
        "Total time",
        "The length of the measured window: from its start to the end of its last request, including pauses and failed requests.",
    ),
    time(
        "service_median",
        "Service time, median",
        "From the actual start of a request to the last byte of its response; a failed request ranks as slower than every success.",
    ),
    time(
        "lag_p99",
        "Schedule lag, P99",
        "From the intended to the actual start of a request, including failed ones: the delay that the client adds.",
    ),
    time(
        "connected_median",
        "Transport connected, median",
        "From the start of a request to the connected transport; successful requests that opened a connection.",
    ),
    time(
        "handshake_median",
        "Handshake done, median",
        "From the start of a request to the end of its handshake; successful requests that opened a connection.",
    ),
    time(
        "first_byte_median",
        "First byte, median",
        "From the start of a request to the first byte of its response; successful requests only.",
    ),
    time(
        "failure_median",
        "Time to failure, median",
        "From the intended start of a request to its failure; failed requests only.",
    ),
    count(
        "request_rate",
        "Requests per second",
        Unit::PerSecond,
        Better::Higher,
        "Successful requests divided by the length of the measured window.",
    ),
    count(
        "goodput",
        "Goodput",
        Unit::BitsPerSecond,
        Better::Higher,
        "Bits of request and response bodies of successful requests, divided by the length of the measured window.",
    ),
    count("requests", "Requests", Unit::Count, Better::Higher, "Requests that succeeded in the measured window."),
    count("error_share", "Failed requests", Unit::Share, Better::Lower, "Failed requests divided by all requests."),
    count(
        "resumed_share",
        "Resumed handshakes",
        Unit::Share,
        Better::Higher,
        "Handshakes that resumed a session, with or without accepted 0-RTT data, divided by all handshakes.",
    ),
    count(
        "early_share",
        "Accepted 0-RTT",
        Unit::Share,
        Better::Higher,
        "Handshakes whose 0-RTT data the server accepted, divided by all handshakes.",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_declared_once_and_every_meaning_is_a_sentence() {
        for (index, metric) in METRICS.iter().enumerate() {
            assert!(METRICS[..index].iter().all(|other| other.name != metric.name), "{} twice", metric.name);
            assert!(metric.meaning.ends_with('.'), "{}", metric.name);
        }
    }
}
