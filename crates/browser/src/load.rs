//! One load of one page: what came of it, and everything that was seen.

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

/// What a browser showed of a load.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Observed {
    /// The requests, in the order in which they were asked for.
    pub resources: Vec<Resource>,
    /// The page's own timeline; absent where the page did not load or does not answer.
    pub timeline: Option<Timeline>,
    /// Why there is no page at all, in the browser's words.
    pub refused: Option<String>,
    /// Whether `load` fired before the deadline.
    pub loaded: bool,
    /// Whether the page's own process ended meanwhile.
    pub crashed: bool,
    /// Pictures of the window, where the load was filmed.
    pub frames: Vec<Frame>,
}

/// One load.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// When it began.
    pub at: String,
    /// Whether it is a sample.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The values of [`crate::METRICS`]; none where it is no sample.
    pub values: Values,
    /// What is to be said of a sample: resources that were not found, and the like.
    pub warnings: Vec<String>,
    /// Requests and connections by host and port.
    pub hosts: IndexMap<String, HostUse>,
    /// The requests, in the order in which they were asked for; times count from the first.
    pub resources: Vec<Resource>,
    /// Milliseconds of the Unix epoch at that first request.
    #[serde(skip)]
    pub zero: f64,
    /// The page's own timeline.
    #[serde(skip)]
    pub timeline: Option<Timeline>,
    /// Pictures of the window, where the load was filmed; times count from the start of the navigation.
    #[serde(skip)]
    pub frames: Vec<Frame>,
}

/// What a page uses of a host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct HostUse {
    /// Requests.
    pub requests: u32,
    /// Connections that carried them; absent where the browser does not say.
    pub connections: Option<u32>,
}

impl Load {
    /// Judges and measures what was seen.
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
