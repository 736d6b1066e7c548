//! The domain types of wirelab: study, plan, trial, records and results.
//!
//! This crate is pure: no input or output, no clock, no randomness. Everything that crosses a process or a file
//! boundary (the endpoint contract, study files, the run folder) is defined here once, with `serde` for the form and
//! `schemars` for the published JSON Schemas in `contract/`.

pub mod amount;
pub mod claim;
pub mod datagram;
pub mod difference;
pub mod emulation;
pub mod environment;
pub mod film;
pub mod integrity;
pub mod journal;
pub mod link;
pub mod manifest;
pub mod metric;
pub mod missing;
pub mod nearest;
pub mod network;
pub mod nodes;
pub mod outcome;
pub mod own_client;
pub mod page;
pub mod page_path;
pub mod path;
pub mod placement;
pub mod plan;
pub mod planted;
pub mod processors;
pub mod proxy;
pub mod queue;
pub mod ramp;
pub mod reason;
pub mod reference;
pub mod request;
pub mod requirement;
pub mod selector;
pub mod settings;
pub mod site;
pub mod study;
pub mod table;
pub mod timeline;
pub mod units;
pub mod usage;
pub mod violation;
pub mod visible;
pub mod warm_up;
pub mod warning;

pub use wirelab_contract::{
    CONTRACT_VERSION, endpoint, event, exposition, heron, histogram, is_unknown, mix, pattern, protocol, relocate,
    sample, spec, totals, transport, via,
};
