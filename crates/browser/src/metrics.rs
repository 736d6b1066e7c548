//! The metrics of a page load.

use std::collections::{BTreeSet, HashMap};

use indexmap::IndexMap;
use wirelab_model::metric::{Better, Computed, Metric, Side, Unit, Value, Values, declared};
use wirelab_model::missing::Missing;
use wirelab_model::protocol::Protocol;

use crate::Browser;
use crate::load::{HostUse, Observed};
use crate::page::Setup;
use crate::resource::Resource;
use crate::timeline::Timeline;

const TIMELINE: &str = "the page's own timeline";
const EVENTS: &str = "the browser's network events";

/// All metrics of a load, in the order of reports.
pub static METRICS: &[Metric] = &declared(&TABLE);

type Compute = fn(&Load<'_>) -> Value;

static TABLE: [Computed<Compute>; 11] = [
    time("onload", "Load event", TIMELINE, "From the start of the navigation to the load event.", |load| {
        load.moment(|page| Some(page.loaded), not_fired("the load event"))
    }),
    time(
        "net",
        "Net time",
        EVENTS,
        "From the first request's leaving to the end of the last response; what a page loads after its load event \
         included.",
        |load| net(load.resources),
    ),
    time(
        "content_loaded",
        "DOMContentLoaded",
        TIMELINE,
        "From the start of the navigation to DOMContentLoaded: the document is read, its scripts have run.",
        |load| load.moment(|page| Some(page.content_loaded), not_fired("DOMContentLoaded")),
    ),
    time(
        "first_byte",
        "First byte",
        TIMELINE,
        "From the start of the navigation to the header of the document's final response; an interim one (103) is \
         none.",
        |load| load.first_byte(),
    ),
    time(
        "first_paint",
        "First contentful paint",
        TIMELINE,
        "From the start of the navigation to the first text or image that is painted.",
        |load| load.moment(|page| page.first_paint, Missing::NoPaint),
    ),
    time(
        "largest_paint",
        "Largest contentful paint",
        TIMELINE,
        "From the start of the navigation to the largest text or image that is painted.",
        |load| load.moment(|page| page.largest_paint, Missing::NoPaint),
    ),
    count(
        "requests",
        "Requests",
        Unit::Count,
        "Requests that left the browser, redirects and failed ones included.",
        |load| Value::Measured(load.resources.len() as f64),
    ),
    count(
        "received",
        "Bytes received",
        Unit::Bytes,
        "Headers and bodies as they were transferred, without TLS, QUIC and below.",
        |load| sum(load.resources, |resource| resource.received),
    ),
    count(
        "header_bytes",
        "Header bytes received",
        Unit::Bytes,
        "Those of them that are headers of responses.",
        |load| sum(load.resources, |resource| resource.header_bytes),
    ),
    count(
        "request_header_bytes",
        "Header bytes asked with",
        Unit::Bytes,
        "Lines and headers of all requests as HTTP/1.1 writes them: before HTTP/2 and HTTP/3 compress them.",
        |load| sum(load.resources, |resource| resource.request_header_bytes),
    ),
    count("connections", "Connections", Unit::Count, "Connections that carried at least one request.", |load| {
        connection_count(load.resources)
    }),
];

const fn time(
    name: &'static str,
    title: &'static str,
    vantage: &'static str,
    meaning: &'static str,
    compute: Compute,
) -> Computed<Compute> {
    let (unit, side, better) = (Unit::Nanoseconds, Side::Client, Better::Lower);
    Computed { metric: Metric { name, title, unit, side, vantage, better, meaning }, compute }
}

const fn count(
    name: &'static str,
    title: &'static str,
    unit: Unit,
    meaning: &'static str,
    compute: Compute,
) -> Computed<Compute> {
    let (side, better) = (Side::Client, Better::Lower);
    Computed { metric: Metric { name, title, unit, side, vantage: EVENTS, better, meaning }, compute }
}

fn not_fired(event: &str) -> Missing {
    Missing::NotFired { event: event.to_owned() }
}

/// Removes Firefox' wrong response starts. On a new connection over HTTP/1.1 it reports the server's session tickets as
/// the start of the response (measured against a server that delays responses by 300 ms). This affects the first
/// request on each connection, and requests whose connection is unknown.
pub fn leave_out_what_is_wrong(setup: &Setup, resources: &mut [Resource]) {
    if !has_wrong_first_bytes(setup) {
        return;
    }
    let left = |resource: &Resource| resource.connection.zip(resource.moments.request);
    let mut first: HashMap<u64, f64> = HashMap::new();
    for (connection, request) in resources.iter().filter_map(left) {
        let first = first.entry(connection).or_insert(request);
        *first = first.min(request);
    }
    let is_later = |(connection, request): (u64, f64)| first[&connection] < request;
    for resource in resources.iter_mut().filter(|resource| !left(resource).is_some_and(is_later)) {
        resource.moments.response = None;
    }
}

/// Sets the document's response start to that of its final response. After early hints Firefox' network events report
/// the interim response; only the page's timeline has the final one.
pub fn skip_the_interim_response(seen: &mut Observed) {
    let Observed { resources, timeline: Some(timeline), .. } = seen else { return };
    let Some(response) = resources.first_mut().and_then(|document| document.moments.response.as_mut()) else { return };
    if timeline.hinted() > 0 && timeline.final_response > 0.0 {
        *response = response.max(timeline.origin + timeline.final_response);
    }
}

fn has_wrong_first_bytes(setup: &Setup) -> bool {
    setup.browser == Browser::Firefox && setup.protocol == Protocol::H1
}

/// The values of a load that is a sample.
pub fn values(setup: &Setup, seen: &Observed) -> Values {
    let load = Load { setup, resources: &seen.resources, timeline: seen.timeline.as_ref() };
    TABLE.iter().map(|row| (row.metric.name.to_owned(), (row.compute)(&load))).collect()
}

/// The observations from which the metrics are computed.
struct Load<'a> {
    setup: &'a Setup,
    resources: &'a [Resource],
    timeline: Option<&'a Timeline>,
}

impl Load<'_> {
    /// A moment of the page's timeline, which has 0 for a moment that did not come.
    fn moment(&self, of: impl Fn(&Timeline) -> Option<f64>, otherwise: Missing) -> Value {
        let Some(timeline) = self.timeline else { return Value::missing(Missing::NoPageTimeline) };
        match of(timeline).filter(|moment| *moment > 0.0) {
            None => Value::missing(otherwise),
            Some(milliseconds) => Value::Measured(nanoseconds(milliseconds)),
        }
    }

    fn first_byte(&self) -> Value {
        if has_wrong_first_bytes(self.setup) {
            return Value::missing(Missing::SessionTicketsAsFirstByte);
        }
        // Browsers that do not report the final response do not support early hints, either.
        let moment =
            |page: &Timeline| Some(if page.final_response > 0.0 { page.final_response } else { page.response });
        self.moment(moment, Missing::NotSaidByBrowser)
    }
}

fn nanoseconds(milliseconds: f64) -> f64 {
    (milliseconds * 1e6).round()
}

/// From the departure of the first request to the end of the last response.
fn net(resources: &[Resource]) -> Value {
    let first = resources.iter().filter_map(|resource| resource.moments.request).reduce(f64::min);
    let last = resources.iter().filter_map(|resource| resource.moments.end).reduce(f64::max);
    match (first, last) {
        (Some(first), Some(last)) => Value::finite(nanoseconds(last - first), Missing::NotFinite),
        _ => Value::missing(Missing::NoRequestTimes),
    }
}

/// The sum over all complete resources; missing if one of them lacks the value. Failed and unfinished resources are
/// left out.
fn sum(resources: &[Resource], of: impl Fn(&Resource) -> Option<u64>) -> Value {
    let complete = resources.iter().filter(|resource| resource.error.is_none() && resource.moments.end.is_some());
    let total: Option<u64> = complete.map(of).sum();
    total.map_or_else(|| Value::missing(Missing::NotSaidOfEveryResource), |total| Value::Measured(total as f64))
}

/// Requests and connections by host.
pub fn hosts(resources: &[Resource]) -> IndexMap<String, HostUse> {
    let names: indexmap::IndexSet<&str> = resources.iter().map(|resource| resource.host.as_str()).collect();
    let of = |name: &str| {
        let own = || resources.iter().filter(|resource| resource.host == name);
        let requests = own().count().try_into().unwrap_or(u32::MAX);
        HostUse { requests, connections: connections(own()) }
    };
    names.into_iter().map(|name| (name.to_owned(), of(name))).collect()
}

fn connection_count(resources: &[Resource]) -> Value {
    let count = connections(resources.iter());
    count.map_or_else(|| Value::missing(Missing::UnnumberedConnections), |count| Value::Measured(f64::from(count)))
}

/// The number of different connections that carried requests; `None` if no resource has a connection. Unused
/// connections do not count.
fn connections<'a>(resources: impl Iterator<Item = &'a Resource>) -> Option<u32> {
    let numbers: BTreeSet<_> = resources.filter_map(|resource| resource.connection).collect();
    (!numbers.is_empty()).then(|| numbers.len().try_into().unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Origin;
    use crate::{Moments, Timeline};

    fn setup(browser: Browser, protocol: Protocol) -> Setup {
        let origins: Vec<Origin> = Vec::new();
        Setup { browser, program: "browser".into(), protocol, origins, authority: None, logs: Default::default() }
    }

    fn resource(host: &str, connection: Option<u64>, request: f64, end: f64) -> Resource {
        let connect = Some((request - 20.0, request));
        let moments = Moments { start: request, connect, request: Some(request), end: Some(end), ..Moments::default() };
        let (received, header_bytes) = (Some(1000), Some(100));
        Resource { host: host.to_owned(), connection, moments, received, header_bytes, ..Resource::default() }
    }

    fn load(resources: Vec<Resource>) -> Observed {
        let timeline = Timeline { loaded: 900.5, response: 100.0, final_response: 400.0, ..Timeline::default() };
        Observed { resources, timeline: Some(timeline), loaded: true, ..Observed::default() }
    }

    #[test]
    fn every_metric_has_a_value_or_a_reason() {
        let values = values(&setup(Browser::Chromium, Protocol::H2), &load(vec![resource("a:1", Some(3), 50.0, 80.0)]));
        assert_eq!(
            values.keys().map(String::as_str).collect::<Vec<_>>(),
            METRICS.iter().map(|m| m.name).collect::<Vec<_>>()
        );
        assert_eq!(values["onload"], Value::Measured(900_500_000.0));
        assert_eq!(values["first_byte"], Value::Measured(400e6), "the final response's, not that of a 103");
        assert_eq!(values["first_paint"], Value::missing(Missing::NoPaint));
        assert_eq!((values["received"].number(), values["header_bytes"].number()), (Some(1000.0), Some(100.0)));
    }

    #[test]
    fn net_time_goes_on_after_the_load_event() {
        let resources = vec![resource("a:1", Some(1), 50.0, 80.0), resource("a:1", Some(1), 60.0, 2050.0)];
        assert_eq!(net(&resources), Value::Measured(2e9));
        assert!(net(&[]).number().is_none());
    }

    #[test]
    fn firefoxs_first_bytes_over_http_1_are_not_believed() {
        let (firefox, chromium) = (setup(Browser::Firefox, Protocol::H1), setup(Browser::Chromium, Protocol::H1));
        let seen = load(vec![resource("a:1", None, 50.0, 80.0)]);
        assert_eq!(values(&firefox, &seen)["first_byte"], Value::missing(Missing::SessionTicketsAsFirstByte));
        assert!(values(&chromium, &seen)["first_byte"].number().is_some());
        // The second request follows the first on its connection; the third is the first on another; the fourth has no
        // known connection.
        let seen = [(Some(1), 50.0), (Some(1), 60.0), (Some(2), 60.0), (None, 60.0)];
        let answered = |(connection, request)| {
            let mut resource = resource("a:1", connection, request, 80.0);
            resource.moments = Moments { connect: None, response: Some(70.0), ..resource.moments };
            resource
        };
        let mut resources = seen.map(answered);
        leave_out_what_is_wrong(&firefox, &mut resources);
        let waits = resources.each_ref().map(|resource| resource.moments.wait());
        assert_eq!(waits, [None, Some(10.0), None, None]);
    }

    #[test]
    fn the_documents_response_is_the_final_one() {
        let mut seen = load(vec![resource("a:1", None, 1050.0, 1480.0)]);
        skip_the_interim_response(&mut seen);
        assert_eq!(seen.resources[0].moments.response, None, "what is not known stays so");
        let hinted = crate::timeline::Entry { initiator: "early-hints".to_owned(), ..Default::default() };
        seen.timeline.as_mut().unwrap().entries.push(hinted);
        for (said, right) in [(1100.0, 1400.0), (1401.0, 1401.0)] {
            seen.timeline.as_mut().unwrap().origin = 1000.0;
            seen.resources[0].moments.response = Some(said);
            skip_the_interim_response(&mut seen);
            assert_eq!(seen.resources[0].moments.response, Some(right));
        }
    }

    #[test]
    fn connections_are_counted_by_number() {
        let (a, b) = (|number| resource("a:1", number, 50.0, 80.0), |number| resource("b:1", number, 50.0, 80.0));
        let shared = hosts(&[a(Some(1)), a(Some(2)), b(Some(2)), b(None)]);
        assert_eq!(shared["a:1"], HostUse { requests: 2, connections: Some(2) });
        assert_eq!(shared["b:1"], HostUse { requests: 2, connections: Some(1) });
        assert_eq!(hosts(&[a(None), a(None)])["a:1"], HostUse { requests: 2, connections: None });
        let values = values(&setup(Browser::Firefox, Protocol::H2), &load(vec![a(None)]));
        assert_eq!(values["connections"], Value::missing(Missing::UnnumberedConnections));
    }

    #[test]
    fn a_sum_with_a_gap_is_none() {
        let mut resources = vec![resource("a:1", None, 50.0, 80.0), resource("a:1", None, 50.0, 80.0)];
        resources[1].received = None;
        assert!(sum(&resources, |resource| resource.received).number().is_none());
        resources[1].error = Some("failed".to_owned());
        assert_eq!(sum(&resources, |resource| resource.received), Value::Measured(1000.0));
    }
}
