//! The journal: one JSON line per trial, appended and synced before the next trial starts.

use serde::{Deserialize, Serialize};

use crate::event::Configured;
use crate::link::{Link, Reading};
use crate::metric::Values;
use crate::outcome::Outcome;
use crate::plan::Trial;
use crate::timeline::TimelineRecord;
use crate::warning::Warning;

/// One line of `journal.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "entry", rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "nearly every entry is the large one, and there is one per trial")]
pub enum Entry {
    /// A trial ended, in whatever way.
    Trial(TrialRecord),
    /// A process of wirelab started to work on the run, for the first time or to resume it.
    Started {
        /// When, RFC 3339.
        at: String,
    },
    /// The links of the lab were measured.
    Links(LinkCheck),
    /// No further block will start, and why.
    Stopped {
        /// Why.
        reason: StopReason,
        /// When, RFC 3339.
        at: String,
    },
}

/// What the links of the lab were measured to do, between two blocks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkCheck {
    /// The block that follows; the measurement counts for it and for the one before.
    pub block: u32,
    /// When, RFC 3339.
    pub at: String,
    /// Each link of the plan.
    pub links: Vec<LinkRecord>,
}

impl LinkCheck {
    /// Why a trial of this block over this link does not count; absent: it does.
    #[must_use]
    pub fn spoils(&self, block: u32, link: &Link) -> Option<&str> {
        let concerns = block == self.block || block + 1 == self.block;
        let record = self.links.iter().find(|record| concerns && record.link == *link)?;
        record.miss.as_deref()
    }
}

/// What a link was measured to do, beside what it was told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// The placement whose link it is.
    pub placement: String,
    /// What it was told.
    pub link: Link,
    /// What it does.
    pub reading: Reading,
    /// How it misbehaves; absent: it is within its tolerances.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub miss: Option<String>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// Every interval is narrow enough.
    Precise,
    /// The last planned block is done.
    MaxBlocks,
    /// The time budget is spent.
    Budget,
    /// The user interrupted it.
    Interrupted,
    /// Every trial of the first blocks failed.
    Hopeless,
}

/// What one of several clients did that shared the workload of a trial. Moments are nanoseconds of the measured window, which begins
/// when the first of them is told to go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Portion {
    /// When it was told to go.
    pub told_ns: u64,
    /// When it had begun at the latest: when its end was heard of, less the length of its own window.
    pub begun_ns: u64,
    /// The length of its own window.
    pub window_ns: u64,
    /// The number of its first connection in the samples; its others follow.
    pub first_connection: u32,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// The median response time of those that succeeded; absent: none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_median_ns: Option<u64>,
}

/// What is kept of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRecord {
    /// Which trial.
    #[serde(flatten)]
    pub trial: Trial,
    /// When it began, RFC 3339.
    pub at: String,
    /// How long the whole trial took, starting and stopping included, in nanoseconds.
    pub took_ns: u64,
    /// How it ended.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The measured window in nanoseconds; 0 where there was none.
    pub window_ns: u64,
    /// Values from the client's records and from the observers. Empty unless the outcome is `ok`.
    pub values: Values,
    /// Samples or histograms, below the run folder; absent where there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
    /// What the server said is in force.
    #[serde(default)]
    pub server: Configured,
    /// What the client said is in force and was negotiated.
    #[serde(default)]
    pub client: Configured,
    /// What was done in the window, and when; absent: there is no timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<TimelineRecord>,
    /// What each client did, where several shared the workload; otherwise empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clients: Vec<Portion>,
    /// Median response time, in nanoseconds, of the requests that began in each fifth of the window; empty if a fifth has too few.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profile: Vec<u64>,
    /// What the report has to say of this trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}
