//! A page load: its outcome and everything that the browser reported.

use indexmap::IndexMap;
use jiff::Timestamp;
use serde::Serialize;
use wirelab_model::metric::Values;
use wirelab_model::outcome::Outcome;

use crate::check;
use crate::film::{self, Frame};
use crate::metrics;
use crate::page::{Page, Setup};
use crate::resource::Resource;
use crate::timeline::Timeline;

/// The browser's report of a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Observed {
    /// The resources in the order of their requests.
    pub resources: Vec<Resource>,
    /// The page's own timeline; `None` if the page did not load or does not respond.
    pub timeline: Option<Timeline>,
    /// The browser's reason if it shows no page at all.
    pub refused: Option<String>,
    /// Whether `load` fired before the deadline.
    pub loaded: bool,
    /// Whether the page's process ended during the load.
    pub crashed: bool,
    /// Pictures of the window, if the load was filmed.
    pub frames: Vec<Frame>,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// When the load began.
    pub at: String,
    /// Whether the load is a sample.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The values of [`crate::METRICS`]; empty if the load is no sample.
    pub values: Values,
    /// Warnings about a sample, such as resources that were not found.
    pub warnings: Vec<String>,
    /// Requests and connections by host and port.
    pub hosts: IndexMap<String, HostUse>,
    /// The resources in the order of their requests; times are relative to the first request.
    pub resources: Vec<Resource>,
    /// The first request in milliseconds of the Unix epoch.
    #[serde(skip)]
    pub zero: f64,
    /// The page's own timeline.
    #[serde(skip)]
    pub timeline: Option<Timeline>,
    /// Pictures of the window, if the load was filmed; times are relative to the start of the navigation.
    #[serde(skip)]
    pub frames: Vec<Frame>,
}

/// A page's use of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostUse {
    /// Number of requests.
    pub requests: u32,
    /// Number of connections that carried requests; `None` if the browser does not report connections.
    pub connections: Option<u32>,
}

impl Load {
    /// Checks and measures a load.
    pub(crate) fn of(setup: &Setup, page: &Page, mut seen: Observed) -> Self {
        check::second_opinion(&mut seen);
        metrics::leave_out_what_is_wrong(setup, &mut seen.resources);
        metrics::skip_the_interim_response(&mut seen);
        let outcome = check::judge(setup, page, &seen);
        let values = match outcome {
            Outcome::Ok => metrics::values(setup, &seen),
            _ => Values::default(),
        };
        let zero = seen.resources.iter().map(|resource| resource.moments.start).reduce(f64::min).unwrap_or_default();
        let mut resources = seen.resources;
        for resource in &mut resources {
            resource.moments = resource.moments.since(zero);
        }
        Self {
            at: Timestamp::from_millisecond(zero as i64).map_or_else(|_| String::new(), |at| at.to_string()),
            warnings: check::warnings(&resources),
            hosts: metrics::hosts(&resources),
            outcome,
            values,
            resources,
            zero,
            frames: film::since_navigation(seen.frames, seen.timeline.as_ref()),
            timeline: seen.timeline,
        }
    }

    /// A load that did not begin.
    #[must_use]
    pub fn not_begun(outcome: Outcome) -> Self {
        Self {
            at: Timestamp::now().to_string(),
            outcome,
            values: Values::default(),
            warnings: Vec::new(),
            hosts: IndexMap::new(),
            resources: Vec::new(),
            zero: 0.0,
            timeline: None,
            frames: Vec::new(),
        }
    }
}
