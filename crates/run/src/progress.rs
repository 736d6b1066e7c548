//! Progress of a run, for a progress bar.

use std::time::Duration;

use wirelab_model::outcome::Outcome;

/// Progress of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// Current phase.
    pub phase: Phase,
    /// The current block, from 0.
    pub block: u32,
    /// Maximum number of blocks.
    pub blocks: u32,
    /// Trials in the journal, including those of earlier sessions.
    pub done: u32,
    /// Maximum number of trials.
    pub trials: u32,
    /// Label of the current cell; empty outside trials.
    pub cell: String,
    /// Time since this session began.
    pub elapsed: Duration,
    /// Upper estimate of the remaining time; `None` before the first trial.
    pub remaining: Option<Duration>,
    /// Outcome of the last trial of this session.
    pub last: Option<Outcome>,
}

/// Phase of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Creates certificates and documents.
    Preparing,
    /// Probes the endpoints for violations of the contract.
    Probing,
    /// Measures the lab's links, between blocks.
    Links,
    /// Runs trials.
    Measuring,
    /// Waits until Prometheus has scraped the last numbers.
    Showing,
}
