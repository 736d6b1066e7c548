//! Progress of blocks, for a progress bar.

use std::time::{Duration, Instant};

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
    /// Runs a trial with a planted effect.
    Planting,
    /// Runs a trial against the null server.
    Referring,
    /// Waits until Prometheus has scraped the last numbers.
    Showing,
}

/// Counts the trials of blocks that begin with this process and are measured at once.
#[derive(Debug)]
pub struct Counter {
    begun: Instant,
    blocks: u32,
    trials: u32,
    done: u32,
}

impl Counter {
    /// Starts with no trial done.
    #[must_use]
    pub fn new(blocks: u32, cells: usize) -> Self {
        let cells = u32::try_from(cells).unwrap_or(u32::MAX);
        Self { begun: Instant::now(), blocks, trials: blocks.saturating_mul(cells), done: 0 }
    }

    /// Counts one more trial.
    pub const fn count(&mut self) {
        self.done += 1;
    }

    /// Progress at a trial of this block and cell.
    #[must_use]
    pub fn progress(&self, block: u32, cell: String) -> Progress {
        let elapsed = self.begun.elapsed();
        let each = elapsed.checked_div(self.done);
        Progress {
            phase: Phase::Measuring,
            block,
            blocks: self.blocks,
            done: self.done,
            trials: self.trials,
            cell,
            elapsed,
            remaining: each.map(|each| each.saturating_mul(self.trials.saturating_sub(self.done))),
            last: None,
        }
    }
}
