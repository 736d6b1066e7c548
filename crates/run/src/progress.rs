//! Where a run is, for a progress bar.

use std::time::Duration;

use wirelab_model::outcome::Outcome;

/// Where a run is.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done.
    pub phase: Phase,
    /// The current block, from 0.
    pub block: u32,
    /// Blocks at most.
    pub blocks: u32,
    /// Trials in the journal, those of earlier sessions included.
    pub done: u32,
    /// Trials at most.
    pub trials: u32,
    /// The label of the current cell; empty outside trials.
    pub cell: String,
    /// Since this session began.
    pub elapsed: Duration,
    /// An estimate of what is left at most; absent before the first trial.
    pub remaining: Option<Duration>,
    /// How the last trial of this session ended.
    pub last: Option<Outcome>,
}

/// What a session is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Making certificates and documents.
    Preparing,
    /// Checking that the endpoints keep the contract.
    Probing,
    /// Measuring the lab's links, between blocks.
    Links,
    /// Running trials.
    Measuring,
    /// Waiting until Prometheus has seen the last numbers.
    Showing,
}
