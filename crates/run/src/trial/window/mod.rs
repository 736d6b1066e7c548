//! The measured window of a trial.

pub(crate) mod shared;
pub(crate) mod timeline;
