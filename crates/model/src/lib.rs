//! The domain types of wirelab: study, plan, trial, records and results.
//!
//! This crate is pure: no input or output, no clock, no randomness. Everything that crosses a process or a file
//! boundary (the endpoint contract, study files, the run folder) is defined here once, with `serde` for the form and
//! `schemars` for the published JSON Schemas in `contract/`.

pub mod claim;
pub mod endpoint;
pub mod environment;
pub mod event;
pub mod exposition;
pub mod film;
pub mod heron;
pub mod histogram;
pub mod journal;
pub mod link;
pub mod manifest;
pub mod metric;
pub mod nearest;
pub mod network;
pub mod nodes;
pub mod outcome;
pub mod page;
pub mod page_path;
pub mod pattern;
pub mod plan;
pub mod protocol;
pub mod queue;
pub mod sample;
pub mod selector;
pub mod settings;
pub mod site;
pub mod spec;
pub mod study;
pub mod table;
pub mod timeline;
pub mod transport;
pub mod units;
pub mod usage;
pub mod warning;

/// The version of the endpoint contract that this build implements. It changes when an endpoint must change.
pub const CONTRACT_VERSION: u32 = 1;
