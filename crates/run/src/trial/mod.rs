//! One trial, from fresh processes to a record.

mod carried;
mod clients;
mod conduct;
mod context;
mod distorted;
mod drops;
mod endpoint_handle;
mod keep;
mod life;
mod membership;
mod merge;
mod names;
pub(crate) mod preparation;
mod processors;
mod rehearsal;
pub mod results;
pub mod results_error;
mod run_queue;
mod start;
mod stop;
mod verify;
mod window;

pub(crate) use context::TrialContext;
pub(crate) use endpoint_handle::TrialAbort;
pub(crate) use life::observers;
pub(crate) use names::server_log;
