//! The values of a trial with page loads: medians over its loads.

use wirelab_model::metric::{Better, Metric, Side, Unit, Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::page::PageLoad;

const TIMELINE: &str = "the page's own timeline in the browser, median of the trial's loads";
const EVENTS: &str = "the browser's network events, median of the trial's loads";

/// The prefix of page metrics in trials; `wirelab page` uses the names without it.
const PREFIX: &str = "page_";

/// Every metric that [`pages`] produces, in its order.
pub static PAGE_METRICS: &[Metric] = &[
    time("page_onload", "Load event", TIMELINE, "From the start of the navigation to the load event."),
    time(
        "page_net",
        "Net time",
        EVENTS,
        "From the start of the first request to the end of the last response, including requests after the load event.",
    ),
    time(
        "page_content_loaded",
        "DOMContentLoaded",
        TIMELINE,
        "From the start of the navigation to DOMContentLoaded: the document is parsed, its scripts have run.",
    ),
    time(
        "page_first_byte",
        "First byte of the page",
        TIMELINE,
        "From the start of the navigation to the header of the document's final response; interim responses (103) do not count.",
    ),
    time(
        "page_first_paint",
        "First contentful paint",
        TIMELINE,
        "From the start of the navigation to the first painted text or image.",
    ),
    time(
        "page_largest_paint",
        "Largest contentful paint",
        TIMELINE,
        "From the start of the navigation to the largest painted text or image.",
    ),
    count("page_requests", "Requests of a load", Unit::Count, "Requests that the browser sent for one load."),
    count(
        "page_received",
        "Bytes received for a load",
        Unit::Bytes,
        "Headers and bodies as transferred, without TLS, QUIC and lower layers.",
    ),
    count("page_header_bytes", "Header bytes received for a load", Unit::Bytes, "Received bytes of response headers."),
    count(
        "page_request_header_bytes",
        "Header bytes of requests of a load",
        Unit::Bytes,
        "Request lines and headers in the format of HTTP/1.1, before the compression of HTTP/2 and HTTP/3.",
    ),
    count("page_connections", "Connections of a load", Unit::Count, "Connections that carried at least one request."),
];

const fn time(name: &'static str, title: &'static str, vantage: &'static str, meaning: &'static str) -> Metric {
    let (unit, side, better) = (Unit::Nanoseconds, Side::Client, Better::Lower);
    Metric { name, title, unit, side, vantage, better, meaning }
}

const fn count(name: &'static str, title: &'static str, unit: Unit, meaning: &'static str) -> Metric {
    Metric { name, title, unit, side: Side::Client, vantage: EVENTS, better: Better::Lower, meaning }
}

/// The values of every metric in [`PAGE_METRICS`], as medians over the loads. If a load lacks a value, the metric is
/// missing with the reason of that load.
#[must_use]
pub fn pages(loads: &[PageLoad]) -> Values {
    let value = |metric: &Metric| {
        let name = metric.name.strip_prefix(PREFIX).unwrap_or(metric.name);
        median(loads.iter().map(|load| load.values.get(name)))
    };
    PAGE_METRICS.iter().map(|metric| (metric.name.to_owned(), value(metric))).collect()
}

fn median<'a>(values: impl Iterator<Item = Option<&'a Value>>) -> Value {
    let mut numbers = Vec::new();
    for value in values {
        match value {
            Some(Value::Measured(number)) => numbers.push(*number),
            Some(missing) => return missing.clone(),
            None => return Value::missing(Missing::NotMeasuredByClient),
        }
    }
    numbers.sort_by(f64::total_cmp);
    match (numbers.len(), numbers.len() / 2) {
        (0, _) => Value::missing(Missing::NoLoad),
        (count, middle) if count % 2 == 0 => Value::Measured(f64::midpoint(numbers[middle - 1], numbers[middle])),
        (_, middle) => Value::Measured(numbers[middle]),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::outcome::Outcome;

    use super::*;

    fn load(onload: Value) -> PageLoad {
        let values = [("onload".to_owned(), onload)].into_iter().collect();
        PageLoad { outcome: Outcome::Ok, values, warnings: Vec::new(), resources: Vec::new() }
    }

    #[test]
    fn a_trial_has_the_median_of_its_loads() {
        let of = |numbers: &[f64]| {
            let loads: Vec<_> = numbers.iter().map(|number| load(Value::Measured(*number))).collect();
            pages(&loads)["page_onload"].number()
        };
        assert_eq!(of(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(of(&[3.0, 1.0]), Some(2.0));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn a_value_missing_in_one_load_is_missing_in_the_trial_with_the_reason() {
        let values =
            pages(&[load(Value::Measured(1.0)), load(Value::missing(Missing::other("the load event did not fire")))]);
        assert_eq!(values["page_onload"], Value::missing(Missing::other("the load event did not fire")));
        assert_eq!(values["page_net"], Value::missing(Missing::NotMeasuredByClient));
        assert!(values.keys().map(String::as_str).eq(PAGE_METRICS.iter().map(|metric| metric.name)));
    }

    #[test]
    fn names_are_unlike_those_of_other_metrics_and_meanings_are_sentences() {
        for metric in PAGE_METRICS {
            assert!(metric.name.starts_with(PREFIX) && metric.meaning.ends_with('.'), "{}", metric.name);
            assert!(crate::METRICS.iter().chain(crate::TRANSPORT_METRICS).all(|other| other.name != metric.name));
        }
    }
}
