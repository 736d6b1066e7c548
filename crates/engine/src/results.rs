//! The results of a client's thread.

use wirelab_contract::event::Configured;

use crate::reading::Totals;
use crate::record::Recorder;
use crate::refusal::Failure;

#[derive(Debug)]
pub struct ThreadResults {
    /// The records.
    pub recorder: Recorder,
    /// The first failure of its window, for the log.
    pub first_failure: Option<Failure>,
    /// Number of requests that went on a new connection, because the old one turned them away.
    pub sent_again: u64,
    /// The effective settings.
    pub configured: Configured,
    /// Transport statistics of its connections since the end of the warm-up.
    pub transport: Option<Totals>,
}
