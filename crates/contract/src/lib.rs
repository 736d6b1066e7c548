//! What endpoints and wirelab say to each other: descriptions, specs, events, samples and histograms, with the words
//! that these need. Endpoints depend on this crate and on nothing else of wirelab's types.
//!
//! The crate is pure: no input or output, no clock, no randomness. `schemars` derives the published JSON Schemas in
//! `contract/schema/` from it.

pub mod endpoint;
pub mod error_kind;
pub mod event;
pub mod exposition;
pub mod heron;
pub mod histogram;
pub mod page;
pub mod pattern;
pub mod protocol;
pub mod sample;
pub mod spec;
pub mod transport;

/// The version of the endpoint contract that this build implements. It changes when an endpoint must change.
pub const CONTRACT_VERSION: u32 = 1;
