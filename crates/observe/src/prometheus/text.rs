//! Renders the numbers in the OpenMetrics text format.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use wirelab_model::exposition::{BOUNDS_NS, Exposed, Times};

use super::Labels;
use super::board::Shown;

/// The media type of the text.
pub(super) const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The text of one scrape.
pub(super) fn text(shown: Shown, exposed: Vec<Exposed>) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { shown, exposed }));
    let mut text = String::new();
    encode(&mut text, &registry).expect("writing to memory does not fail");
    text
}

#[derive(Debug)]
struct Scrape {
    shown: Shown,
    exposed: Vec<Exposed>,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.counter(
            &mut encoder,
            "wirelab_requests",
            "Server: requests answered since it was started. Client: requests that succeeded in the measured window",
            |exposed| Some(exposed.requests),
        )?;
        self.counter(
            &mut encoder,
            "wirelab_failed_requests",
            "Client: requests that failed in the measured window",
            |exposed| exposed.failed,
        )?;
        self.connections(&mut encoder)?;
        self.response(&mut encoder)?;
        let pods = self.shown.pods.iter().map(|(labels, count)| (labels, *count as f64));
        gauge(&mut encoder, "wirelab_pods", "Servers that accept requests, clients that send requests", None, pods)?;
        let actions = self.shown.actions.iter().map(|(labels, at)| (labels, *at));
        let help = "When the action last began, as Unix time";
        gauge(&mut encoder, "wirelab_action_timestamp", help, Some(&Unit::Seconds), actions)
    }
}

impl Scrape {
    fn counter(
        &self,
        encoder: &mut DescriptorEncoder<'_>,
        name: &str,
        help: &str,
        of: impl Fn(&Exposed) -> Option<u64>,
    ) -> fmt::Result {
        let counted: Vec<_> = self.exposed.iter().filter_map(|one| Some((labels(one), of(one)?))).collect();
        if counted.is_empty() {
            return Ok(());
        }
        let mut family = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        counted.iter().try_for_each(|(labels, count)| {
            family.encode_family(labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)
        })
    }

    fn connections(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let known = |one: &Exposed| Some((labels(one), one.connections? as f64));
        let open: Vec<_> = self.exposed.iter().filter_map(known).collect();
        let open = open.iter().map(|(labels, count)| (labels, *count));
        gauge(encoder, "wirelab_open_connections", "Open connections", None, open)
    }

    fn response(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let known = |one: &Exposed| Some((labels(one), one.response.clone()?));
        let responses: Vec<_> = self.exposed.iter().filter_map(known).collect();
        if responses.is_empty() {
            return Ok(());
        }
        let help = "Client: response times of requests that succeeded in the measured window, from the intended start";
        let kind = MetricType::Histogram;
        let mut family = encoder.encode_descriptor("wirelab_response", help, Some(&Unit::Seconds), kind)?;
        responses.iter().try_for_each(|(labels, Times { counts, sum_ns })| {
            let bounds = BOUNDS_NS.iter().map(|ns| *ns as f64 / 1e9).chain([f64::INFINITY]);
            let buckets: Vec<_> = bounds.zip(counts.iter().copied()).collect();
            let mut metric = family.encode_family(labels)?;
            metric.encode_histogram::<NoLabelSet>(*sum_ns as f64 / 1e9, counts.iter().sum(), &buckets, None)
        })
    }
}

/// Writes nothing if there are no values: a family without samples has no meaning.
fn gauge<'a>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    unit: Option<&Unit>,
    values: impl Iterator<Item = (&'a Labels, f64)>,
) -> fmt::Result {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let mut family = encoder.encode_descriptor(name, help, unit, MetricType::Gauge)?;
    for (labels, value) in values {
        family.encode_family(labels)?.encode_gauge(&value)?;
    }
    Ok(())
}

fn labels(exposed: &Exposed) -> Labels {
    exposed.labels.clone().into_iter().collect()
}

#[cfg(test)]
mod tests {
    use wirelab_model::exposition::BOUNDS;

    use super::*;

    #[test]
    fn a_scrape_shows_endpoints_and_board_and_omits_unknown_numbers() {
        assert_eq!(text(Shown::default(), Vec::new()), "# EOF\n");
        let label = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut counts = vec![0; BOUNDS + 1];
        (counts[0], counts[BOUNDS]) = (2, 1);
        let exposed = Exposed {
            labels: [label("role", "client"), label("variant", "a \"b\"")].into(),
            requests: 3,
            response: Some(Times { counts, sum_ns: 20_000_010_000 }),
            ..Exposed::default()
        };
        let shown = Shown { actions: [(vec![label("action", "T2")], 1.5)].into(), ..Shown::default() };
        let text = text(shown, vec![exposed]);
        for line in [
            "# TYPE wirelab_requests counter",
            "wirelab_requests_total{role=\"client\",variant=\"a \\\"b\\\"\"} 3",
            "# UNIT wirelab_response_seconds seconds",
            "wirelab_response_seconds_sum{role=\"client\",variant=\"a \\\"b\\\"\"} 20.00001",
            "wirelab_response_seconds_count{role=\"client\",variant=\"a \\\"b\\\"\"} 3",
            "wirelab_response_seconds_bucket{le=\"0.00001\",role=\"client\",variant=\"a \\\"b\\\"\"} 2",
            "wirelab_response_seconds_bucket{le=\"10.0\",role=\"client\",variant=\"a \\\"b\\\"\"} 2",
            "wirelab_response_seconds_bucket{le=\"+Inf\",role=\"client\",variant=\"a \\\"b\\\"\"} 3",
            "wirelab_action_timestamp_seconds{action=\"T2\"} 1.5",
            "# EOF",
        ] {
            assert!(text.lines().any(|is| is == line), "`{line}` is missing in:\n{text}");
        }
        for absent in ["wirelab_failed_requests", "wirelab_open_connections", "wirelab_pods"] {
            assert!(!text.contains(absent), "{text}");
        }
    }
}
