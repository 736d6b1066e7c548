//! The life cycle of trials, the run folder, and resuming.
//!
//! # The run folder
//!
//! A run is a folder, and a report is a pure function of it. The folder is a public format: `docs/results.md` lists its
//! files. The manifest is written last when a run is made, so a folder without it is no run.
//!
//! # Effects of a kill
//!
//! Samples are written under a temporary name, synced and renamed before the line of their trial is appended to the
//! journal. The line is one write, synced before the next trial starts. A kill thus loses at most the trial in
//! flight. It may leave an incomplete last line, or samples without a line; resuming removes both, and readers of the
//! journal ignore them.

pub mod archive;
mod blocks;
pub mod documents;
pub mod environment;
mod error;
mod exporter;
mod film;
#[cfg(test)]
mod fixture;
mod limits;
mod null_server;
mod own_programs;
mod pace;
pub mod pki;
mod progress;
pub mod requests;
mod resolve;
mod run;
pub mod spec;
pub mod store;
pub mod tags;
mod trial;

pub use blocks::{Blocks, each_block};
pub use error::RunError;
pub use limits::Limits;
pub use pace::Pace;
pub use progress::{Counter, Phase, Progress};
pub use resolve::{Additions, Resolved, resolve};
pub use run::{Create, Run};
pub use trial::preparation::PREPARATION_METRICS;
pub use trial::results;
pub use trial::results_error::ResultsError;
