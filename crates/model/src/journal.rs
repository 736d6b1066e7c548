//! The journal: one JSON line per trial, appended and synced before the next trial starts.

use serde::{Deserialize, Serialize};

use crate::event::{Configured, WarmedUp};
use crate::link::{Link, Reading};
use crate::metric::Values;
use crate::outcome::Outcome;
use crate::path::PathRecord;
use crate::plan::Trial;
use crate::planted::{Calibration, PlantedRecord};
use crate::processors::InForce;
use crate::timeline::TimelineRecord;
use crate::warning::Warning;

/// One line of `journal.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
pub enum Entry {
    /// A trial ended, with any outcome.
    Trial(TrialRecord),
    /// A process of wirelab started or resumed the run.
    Started {
        /// Time, RFC 3339.
        at: String,
    },
    /// A trial with a planted effect ended, with any outcome. It is no part of the plan.
    Planted(PlantedRecord),
    /// The response time from which the sizes of planted effects follow.
    Calibrated(Calibration),
    /// A trial against the null server ended, with any outcome. It repeats its cell, and is no part of the plan.
    Reference(TrialRecord),
    /// The lab measured its links.
    Links(LinkCheck),
    /// The outcome of an earlier trial is another one, as a later entry shows.
    Corrected(Correction),
    /// No further block will start.
    Stopped {
        reason: StopReason,
        /// Time, RFC 3339.
        at: String,
    },
}

/// The outcome of a trial, learned after its record was written. It replaces the outcome of that record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Correction {
    /// Number of the trial.
    pub number: u32,
    /// The right outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Time, RFC 3339.
    pub at: String,
}

/// A measurement of the lab's links between two blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkCheck {
    /// The following block; the measurement counts for it and for the previous block.
    pub block: u32,
    /// Time, RFC 3339.
    pub at: String,
    /// The links of the plan.
    pub links: Vec<LinkRecord>,
    /// The paths between hosts, in labs that emulate no links.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathRecord>,
}

impl LinkCheck {
    /// The reason why a trial of this block over this link does not count; `None` if it counts.
    #[must_use]
    pub fn spoils(&self, block: u32, link: &Link) -> Option<&str> {
        let concerns = block == self.block || block + 1 == self.block;
        let record = self.links.iter().find(|record| concerns && record.link == *link)?;
        record.miss.as_deref()
    }
}

/// Measured and configured properties of a link.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The placement of the link.
    pub placement: String,
    /// The configured properties.
    pub link: Link,
    /// The measured properties.
    pub reading: Reading,
    /// The deviation beyond its tolerance; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss: Option<String>,
}

/// The reason for the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Every interval is narrow enough.
    Precise,
    /// The last planned block is done.
    MaxBlocks,
    /// The time budget is exhausted.
    Budget,
    /// The user interrupted it.
    Interrupted,
    /// Every trial of the first blocks failed.
    Hopeless,
}

/// The part of one client in a trial with several clients. Times are nanoseconds of the measured window, which begins
/// with the `go` of the first client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portion {
    /// Time of its command `go`.
    pub told_ns: u64,
    /// Latest possible start: the arrival of its event `end`, minus the length of its own window.
    pub begun_ns: u64,
    /// Length of its own window in nanoseconds.
    pub window_ns: u64,
    /// Number of its first connection in the samples; its other connections follow.
    pub first_connection: u32,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Median response time of successful requests; absent if none succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_median_ns: Option<u64>,
}

/// Response times by the age of connections that were opened within the window.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lives {
    /// Number of these connections with requests besides the opening one.
    pub connections: u32,
    /// Median response time, in nanoseconds, of the requests in each fifth of the lives, by number of requests; empty
    /// if a fifth has too few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<u64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    #[serde(flatten)]
    pub trial: Trial,
    /// Time of its start, RFC 3339.
    pub at: String,
    /// Duration of the whole trial, including start and stop of its processes, in nanoseconds.
    pub took_ns: u64,
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Length of the measured window in nanoseconds; 0 if there was none.
    pub window_ns: u64,
    /// Values from the client's records and from the observers. Empty unless the outcome is `ok`.
    pub values: Values,
    /// File of samples or histograms, relative to the run folder; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
    /// SHA-256 of that file, hexadecimal; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results_sha256: Option<String>,
    /// Effective settings, as reported by the server.
    #[serde(default)]
    pub server: Configured,
    /// Effective settings and negotiated parameters, as reported by the client.
    #[serde(default)]
    pub client: Configured,
    /// Actions of the window, with times; absent without a timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineRecord>,
    /// The part of each client if several shared the workload; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Portion>,
    /// Median response time, in nanoseconds, of the requests that began in each fifth of the window; empty if a fifth
    /// has too few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<u64>,
    /// The lives of persistent connections that were opened within the window; absent without samples of persistent
    /// connections, and in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lives: Option<Lives>,
    /// The end of a warm-up that lasts until response times are steady; absent for another one, and before its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmed_up: Option<WarmedUp>,
    /// Processors that its processes could use, read after the measured window; absent in records before 2026-11-23, in
    /// trials that did not reach that moment, and in the lab `fake`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<InForce>,
    /// Warnings about this trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl TrialRecord {
    /// The record of a trial without a measured window.
    #[must_use]
    pub fn without_window(trial: Trial, at: String, outcome: Outcome) -> Self {
        Self {
            trial,
            at,
            took_ns: 0,
            outcome,
            window_ns: 0,
            values: Values::default(),
            results: None,
            results_sha256: None,
            server: Configured::default(),
            client: Configured::default(),
            timeline: None,
            clients: Vec::new(),
            profile: Vec::new(),
            lives: None,
            warmed_up: None,
            processors: None,
            warnings: Vec::new(),
        }
    }
}
