//! Planted effects: differences of known size in every run, which show whether the run finds what is there.
//!
//! A planted trial repeats a baseline cell with a server that works for a known time before each response. Planted
//! trials are no part of the plan and of no result; they have entries of their own in the journal.

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::journal::TrialRecord;
use crate::units::Share;

/// The sizes of planted effects, as shares of the baseline's response time.
pub const SIZES: [Share; 3] = [Share(0.03), Share(0.05), Share(0.10)];

/// The planted effects of a run, decided when it is created.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Planting {
    /// Effects in a baseline cell.
    Effects {
        /// The number of the cell.
        cell: usize,
        /// Largest share of the time of all trials.
        time: Share,
    },
    /// No effects.
    Nothing(NotPlanted),
}

/// The reason why a run plants no effects: the true effect of more work in the server has to be known.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum NotPlanted {
    /// The study or the user switched them off.
    #[error("planted effects are switched off (`planted = \"0 %\"`)")]
    SwitchedOff,
    /// The server is another endpoint.
    #[error("the server `{server}` cannot be slowed down by a known time; only the built-in server can")]
    OtherServer {
        /// The endpoint.
        server: String,
    },
    /// wirelab does not start the server.
    #[error("wirelab does not start the server of a site")]
    Site,
    /// The work is a page load.
    #[error("the time of a page load does not grow by the sum of the delays of its responses")]
    Page,
    /// The user describes the requests.
    #[error("the requests are your own, and the work of your server for each of them is unknown")]
    OwnRequests,
    /// The client is a program of the user.
    #[error("the client is your program, whose times include its start")]
    OwnClient,
    /// The trial has a timeline.
    #[error("a timeline changes the conditions during the trial")]
    Timeline,
    /// Requests wait for each other.
    #[error("several requests are in flight at a time, so a slower server also delays the requests that wait for it")]
    Concurrent,
    /// Requests pass through proxies.
    #[error("requests pass through sidecars, or several servers share them")]
    Indirect,
    /// The server answers while the request arrives.
    #[error("the server echoes request bodies while they arrive, so its work would overlap with their transfer")]
    Echo,
}

/// The response time of the baseline before anything was planted, from which the sizes in time follow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The block of the trials.
    pub block: u32,
    /// Time, RFC 3339.
    pub at: String,
    /// Mean of the median response times of the two halves of the A/A pair, in nanoseconds.
    pub response_ns: u64,
}

impl Calibration {
    /// The work before each response, in nanoseconds, that makes a response slower by a share.
    #[must_use]
    pub fn work_ns(&self, size: Share) -> u64 {
        (self.response_ns as f64 * size.0).round() as u64
    }
}

/// The record of a planted trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlantedRecord {
    /// The intended size.
    pub size: Share,
    /// The server's additional work before each response, in nanoseconds.
    pub work_ns: u64,
    /// The trial. Its cell is the baseline cell; its number is above those of all trials of the plan.
    pub record: TrialRecord,
}
