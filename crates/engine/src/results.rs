//! What a thread of a client returns.

use wirelab_contract::event::Configured;

use crate::reading::Totals;
use crate::record::Recorder;
use crate::refusal::Failure;

/// The results of a thread.
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
