//! The metrics from a client's records: each is declared and computed in one row.

use wirelab_model::metric::{Better, Computed, Metric, Side, Unit, Value, declared};
use wirelab_model::missing::Missing;

use crate::summary::{Recorded, Requests, joint_percentile, percentile, share};

const CLOCK: &str = "the client's own monotonic clock";
const COUNT: &str = "the client's own records";

type Compute = fn(&Requests) -> Value;

/// A time on the client's clock; lower is better.
const fn time(name: &'static str, title: &'static str, meaning: &'static str, compute: Compute) -> Computed<Compute> {
    let (unit, side, better) = (Unit::Nanoseconds, Side::Client, Better::Lower);
    Computed { metric: Metric { name, title, unit, side, vantage: CLOCK, better, meaning }, compute }
}

/// A count of the client's records.
const fn count(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    better: Better,
    meaning: &'static str,
    compute: Compute,
) -> Computed<Compute> {
    Computed { metric: Metric { name, title, unit, side: Side::Client, vantage: COUNT, better, meaning }, compute }
}

/// Every metric that [`crate::summarise`] produces, in its order.
pub static METRICS: &[Metric] = &declared(&TABLE);

pub(crate) static TABLE: [Computed<Compute>; 22] = [
    time(
        "response_median",
        "Response time, median",
        "From the intended start of a request to the last byte of its response; a failed request ranks as slower \
         than every success.",
        |requests| requests.response_percentile(0.5, 1),
    ),
    time(
        "response_p90",
        "Response time, P90",
        "The response time that nine in ten requests did not exceed (nearest rank); a failed request ranks as slower \
         than every success.",
        |requests| requests.response_percentile(0.9, 10),
    ),
    time(
        "response_p99",
        "Response time, P99",
        "The response time that 99 in 100 requests did not exceed (nearest rank); a failed request ranks as slower \
         than every success.",
        |requests| requests.response_percentile(0.99, 100),
    ),
    time(
        "response_p999",
        "Response time, P99.9",
        "The response time that 999 in 1000 requests did not exceed (nearest rank); a failed request ranks as slower \
         than every success.",
        |requests| requests.response_percentile(0.999, 1000),
    ),
    time(
        "response_mean",
        "Response time, mean",
        "The arithmetic mean of the response times of successful requests.",
        |requests| requests.response.fact(Recorded::mean),
    ),
    time(
        "response_min",
        "Response time, smallest",
        "The exact smallest response time of a successful request.",
        |requests| requests.response.fact(Recorded::smallest),
    ),
    time(
        "response_max",
        "Response time, largest",
        "The exact largest response time of a successful request.",
        |requests| requests.response.fact(Recorded::largest),
    ),
    time(
        "response_iqr",
        "Response time, interquartile range",
        "The third quartile of the response times of successful requests minus the first (nearest rank).",
        |requests| requests.response.quartile_range(),
    ),
    time(
        "total_time",
        "Total time",
        "The length of the measured window: from its start to the end of its last request, including pauses and \
         failed requests.",
        |requests| requests.total_time(),
    ),
    time(
        "service_median",
        "Service time, median",
        "From the actual start of a request to the last byte of its response; a failed request ranks as slower than \
         every success.",
        |requests| joint_percentile(&requests.service, 0.5, 1, requests.failed),
    ),
    time(
        "lag_p99",
        "Schedule lag, P99",
        "From the intended to the actual start of a request, including failed ones: the delay that the client adds.",
        |requests| percentile(&requests.lag, 0.99, 100, Missing::NoRequest),
    ),
    time(
        "connected_median",
        "Transport connected, median",
        "From the start of a request to the connected transport, which with a proxy is the tunnel to the server; \
         successful requests that opened a connection.",
        |requests| requests.connected_median(),
    ),
    time(
        "handshake_median",
        "Handshake done, median",
        "From the start of a request to the end of its handshake; successful requests that opened a connection.",
        |requests| percentile(&requests.handshake, 0.5, 1, Missing::NoNewConnection),
    ),
    time(
        "first_byte_median",
        "First byte, median",
        "From the start of a request to the first byte of its response; successful requests only.",
        |requests| percentile(&requests.first_byte, 0.5, 1, Missing::NoSuccess),
    ),
    time(
        "failure_median",
        "Time to failure, median",
        "From the intended start of a request to its failure; failed requests only.",
        |requests| percentile(&requests.failure, 0.5, 1, Missing::NoFailure),
    ),
    count(
        "request_rate",
        "Requests per second",
        Unit::PerSecond,
        Better::Higher,
        "Successful requests divided by the length of the measured window.",
        |requests| requests.per_second(requests.ok as f64),
    ),
    count(
        "goodput",
        "Goodput",
        Unit::BitsPerSecond,
        Better::Higher,
        "Bits of request and response bodies of successful requests, divided by the length of the measured window.",
        |requests| requests.per_second(requests.bytes as f64 * 8.0),
    ),
    count(
        "requests",
        "Requests",
        Unit::Count,
        Better::Higher,
        "Requests that succeeded in the measured window.",
        |requests| Value::Measured(requests.ok as f64),
    ),
    count(
        "error_share",
        "Failed requests",
        Unit::Share,
        Better::Lower,
        "Failed requests divided by all requests.",
        |requests| share(requests.failed, requests.failed + requests.ok, Missing::NoRequest),
    ),
    count(
        "stalled_share",
        "Time in stalls",
        Unit::Share,
        Better::Lower,
        "The service time of requests that took more than ten times the P99, divided by that of all requests; failed \
         requests included.",
        Requests::stalled_share,
    ),
    count(
        "resumed_share",
        "Resumed handshakes",
        Unit::Share,
        Better::Higher,
        "Handshakes that resumed a session, with or without accepted 0-RTT data, divided by all handshakes.",
        |requests| share(requests.resumed, requests.handshakes, Missing::NoHandshake),
    ),
    count(
        "early_share",
        "Accepted 0-RTT",
        Unit::Share,
        Better::Higher,
        "Handshakes whose 0-RTT data the server accepted, divided by all handshakes.",
        |requests| share(requests.early, requests.handshakes, Missing::NoHandshake),
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
