//! Waterfalls: the requests of one load of a page in the order of their start, grouped by host if there are several;
//! the versions share one time axis.

use wirelab_model::metric::Unit;
use wirelab_model::page::{PageLoad, PageResource};

use crate::Input;
use crate::charts::axis::Axis;
use crate::charts::canvas::{Align, Canvas, Paint, draw};
use crate::charts::frame::{WIDTH, tick_count};
use crate::charts::{Chart, Facet, swatch};
use crate::layout::{Group, Layout};
use crate::numbers::Scale;
use crate::summary::count;

/// The largest number of drawn requests; bars of more would be thinner than a line.
const MOST_REQUESTS: usize = 80;

/// The largest number of groups with a waterfall, which bounds the size of the page.
const MOST_GROUPS: usize = 12;

/// The height of a host's name.
const HEADING: f64 = 16.0;

const LEFT: f64 = 12.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 40.0;

/// A waterfall of each group of cells whose client loads pages, in the order of the study.
pub(crate) fn charts(input: &Input, layout: &Layout) -> Vec<Chart> {
    let groups = layout.groups.iter().enumerate();
    groups.filter_map(|(number, group)| chart(input, layout, number, group)).take(MOST_GROUPS).collect()
}

fn chart(input: &Input, layout: &Layout, number: usize, group: &Group) -> Option<Chart> {
    let rows = group.rows.iter().filter(|row| !row.twin);
    let loads: Vec<_> =
        rows.filter_map(|row| Some((layout.row_title(*row), (input.typical_load)(row.cell)?))).collect();
    let most = loads.iter().map(|(_, load)| load.resources.len().min(MOST_REQUESTS)).max()?;
    let headings = loads.iter().map(|(_, load)| Host::of(load).len()).max().filter(|hosts| *hosts > 1).unwrap_or(0);
    let room = Room { most, headings };
    let moments = || loads.iter().flat_map(|(_, load)| moments(load));
    let axis = Axis::from_zero(moments(), LEFT, RIGHT);
    let facets =
        loads.iter().map(|(title, load)| Facet { title: title.clone(), svg: facet(title, load, &room, &axis) });
    let drawn = if loads.iter().any(|(_, load)| load.resources.len() > MOST_REQUESTS) {
        format!(" Only the first {MOST_REQUESTS} requests of each load are drawn.")
    } else {
        String::new()
    };
    let by_host = if headings > 0 { " Requests are grouped by host." } else { "" };
    Some(Chart {
        id: format!("waterfall-{number}"),
        title: format!("Waterfall of a typical load: {}", group.title()),
        caption: format!(
            "Each line is a request, from its start in the page to the end of its response; the first is the document.{by_host} All drawings share one axis. The thin vertical line is the load event. A typical load belongs to the trial with the cell's median load event. It is an example, not evidence.{drawn}"
        ),
        legend: vec![
            swatch(Paint::Grid, "waiting in the browser"),
            swatch(Paint::Second, "opening a connection, including TLS or QUIC"),
            swatch(Paint::Unknown, "waiting for the response"),
            swatch(Paint::First, "receiving (and waiting, if the browser does not report the start of the response)"),
        ],
        facets: facets.collect(),
        without_outliers: Vec::new(),
    })
}

/// The numbers of requests and headings in the largest of several drawings. Headings are hosts; 0 with a single host.
struct Room {
    most: usize,
    headings: usize,
}

/// The requests of a load to one host.
struct Host<'a> {
    name: &'a str,
    resources: Vec<&'a PageResource>,
}

impl<'a> Host<'a> {
    /// The hosts in the order of their first request.
    fn of(load: &'a PageLoad) -> Vec<Self> {
        let mut hosts: Vec<Self> = Vec::new();
        for resource in load.resources.iter().take(MOST_REQUESTS) {
            let name = resource.host();
            match hosts.iter_mut().find(|host| host.name == name) {
                Some(host) => host.resources.push(resource),
                None => hosts.push(Self { name, resources: vec![resource] }),
            }
        }
        hosts
    }
}

fn facet(title: &str, load: &PageLoad, room: &Room, axis: &Axis) -> String {
    let row = (240.0 / room.most.max(1) as f64).clamp(3.0, 14.0);
    let bottom = TOP + room.most as f64 * row + room.headings as f64 * HEADING;
    let scale = Scale::of(Unit::Nanoseconds, moments(load));
    let name = format!("Waterfall of a load by {title}: {}", count(load.resources.len(), "request"));
    draw(WIDTH, bottom + BOTTOM, &name, |canvas| {
        for (value, label) in axis.ticks(tick_count(RIGHT - LEFT, 5), scale) {
            canvas.line((axis.at(value), TOP), (axis.at(value), bottom), Paint::Grid, 1.0);
            canvas.tick(&label, (axis.at(value), bottom + 11.0));
        }
        let (mut rows, mut headings) = (0, 0);
        for host in Host::of(load) {
            let top = |rows: usize, headings: usize| TOP + rows as f64 * row + headings as f64 * HEADING;
            if room.headings > 0 {
                let words = match load.connections_to(host.name) {
                    Some(connections) => format!("{}: {}", host.name, count(connections, "connection")),
                    None => host.name.to_owned(),
                };
                canvas.text(&words, (LEFT, top(rows, headings) + HEADING / 2.0), Align::Left, Paint::Muted);
                headings += 1;
            }
            for resource in host.resources {
                let top = top(rows, headings);
                bar(canvas, axis, resource, (top + row * 0.12, top + row * 0.88));
                canvas.exact_tip((LEFT, top), (RIGHT, top + row), &facts(title, resource));
                rows += 1;
            }
        }
        if let Some(onload) = onload(load) {
            canvas.line((axis.at(onload), TOP), (axis.at(onload), bottom), Paint::Ink, 1.0);
        }
        canvas.line((LEFT, bottom), (RIGHT, bottom), Paint::Zero, 1.0);
        let middle = f64::midpoint(LEFT, RIGHT);
        let words = format!("time since the first request ({})", scale.name);
        canvas.text(&words, (middle, bottom + 29.0), Align::Middle, Paint::Ink);
    })
}

/// The ends of all requests, and the load event.
fn moments(load: &PageLoad) -> impl Iterator<Item = f64> {
    load.resources.iter().filter_map(|resource| resource.end_ns).map(|ns| ns as f64).chain(onload(load))
}

fn onload(load: &PageLoad) -> Option<f64> {
    load.values.get("onload")?.number()
}

/// The moments of a request, in nanoseconds since the first one of the page.
fn facts(version: &str, resource: &PageResource) -> Vec<(&'static str, String)> {
    let known = |name, number: Option<u64>| number.map(|number| (name, number.to_string()));
    let mut facts = vec![("version", version.to_owned()), ("request", resource.url.clone())];
    facts.extend(
        [
            known("start (ns)", Some(resource.start_ns)),
            known("sent (ns)", resource.request_ns),
            known("response (ns)", resource.response_ns),
            known("end (ns)", resource.end_ns),
            known("bytes", resource.received),
            known("status", resource.status.map(u64::from)),
        ]
        .into_iter()
        .flatten(),
    );
    facts
}

/// The phases of a request, one after the other.
fn bar(canvas: &mut Canvas, axis: &Axis, resource: &PageResource, (top, bottom): (f64, f64)) {
    let end = resource.end_ns.unwrap_or(resource.start_ns);
    let request = resource.request_ns.unwrap_or(end);
    let response = resource.response_ns.unwrap_or(request);
    let mut phase = |from: u64, to: u64, paint| {
        if to > from {
            canvas.rect((axis.at(from as f64), top), (axis.at(to as f64), bottom), paint);
        }
    };
    phase(resource.start_ns, request, Paint::Grid);
    if let Some((from, to)) = resource.connect_ns {
        phase(from, to, Paint::Second);
    }
    phase(request, response, Paint::Unknown);
    phase(response, end, Paint::First);
}
