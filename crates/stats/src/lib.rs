//! Samples to values, values to estimates, comparisons, verdicts and warnings. Pure: no input or output, no clock; randomness comes
//! from a seed. This crate knows no protocol.

pub mod analysis;

pub use analysis::Analysis;
