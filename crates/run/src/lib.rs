//! The life cycle of trials, the run folder, and resuming.
//!
//! # The run folder
//!
//! A run is a folder, and a report is a pure function of it. The folder is a public format; `docs/results.md`
//! describes it for users of other tools.
//!
//! | path | content |
//! |---|---|
//! | `manifest.json` | everything known before the first trial ([`Manifest`](wirelab_model::manifest::Manifest));
//! written last when a run is made, so a folder without it is no run |
//! | `journal.jsonl` | one [`Entry`](wirelab_model::journal::Entry) per line, appended and synced before the next trial
//! starts |
//! | `samples/trial-NNNNNN.parquet` | the samples of a trial that ended `ok` ([`store::parquet`]) |
//! | `samples/trial-NNNNNN.json` | its histograms, where the cell records histograms |
//! | `samples/trial-NNNNNN.jsonl` | its loads, where a browser loads a page: one
//! [`PageLoad`](wirelab_model::page::PageLoad) per line |
//! | `logs/trial-NNNNNN-server.log`, `-client.log` | standard error of its endpoints, where they wrote any; each line
//! begins with its time |
//! | `log.jsonl` | the log of wirelab itself, written by the program that executes the run |
//! | `logs/trial-NNNNNN-client-results.jsonl` | what the client of a failed trial wrote, if it did |
//! | `lock` | locked (`flock`) while a process works on the run |
//! | `work/` | specs, certificates, documents; made by each session, removed at its end |
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
mod pace;
pub mod pki;
mod progress;
pub mod requests;
mod resolve;
mod run;
pub mod spec;
pub mod store;
mod trial;

pub use blocks::{Blocks, each_block};
pub use error::RunError;
pub use limits::Limits;
pub use pace::Pace;
pub use progress::{Counter, Phase, Progress};
pub use resolve::{Additions, Resolved, resolve};
pub use run::{Create, Run};
pub use trial::preparation::PREPARATION_METRICS;
