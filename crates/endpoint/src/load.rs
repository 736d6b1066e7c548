//! The load engine on its own, in this process: what `wirelab load` and `wirelab probe` run.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_model::event::Configured;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::spec::ClientSpec;

use crate::builtin;
pub use crate::client::Results;
use crate::client::transport::Failure;
use crate::client::{Control, Ended, Watch};
use crate::file_limit::raise_file_limit;
use crate::refusal::Refusal;

/// How far a load is. Reported about ten times a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Since the measured window began; absent while connections are opened and warmed up.
    pub elapsed: Option<Duration>,
    /// Requests that ended in the window, failed ones included.
    pub requests: u64,
    /// Those of them that failed.
    pub failed: u64,
}

/// What a load found out.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadResult {
    /// Records or histograms, as the spec asks for.
    pub results: Results,
    /// From the beginning of the window to the end of its last request, in nanoseconds.
    pub window_ns: u64,
    /// Whether it was stopped before its end. Requests that were in flight then are not in the results.
    pub stopped: bool,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed, by kind.
    pub errors: IndexMap<ErrorKind, u64>,
    /// The first failure in words.
    pub first_failure: Option<String>,
    /// What was in force and what was negotiated.
    pub configured: Configured,
}

/// Runs a client in this process: check request, connections, warm-up, measured window. `spec.results` is not written.
///
/// `stop` is looked at about ten times a second: set during the window it ends it early, with what was measured so far;
/// set before, it gives [`Refusal::Failed`].
///
/// # Errors
///
/// [`Refusal::Unsupported`] where the spec asks for what cannot be done here; [`Refusal::Failed`] where the check request
/// or a persistent connection failed. Failed requests of the window are results, not errors.
pub fn run(spec: &ClientSpec, mut progress: impl FnMut(Progress), stop: &AtomicBool) -> Result<LoadResult, Refusal> {
    raise_file_limit();
    let began = std::cell::Cell::new(None::<Instant>);
    let watch: Watch<'_> = Box::new(|requests, failed| {
        progress(Progress { elapsed: began.get().map(|zero| zero.elapsed()), requests, failed });
        stop.load(Ordering::Relaxed)
    });
    let mut control = Control::start(spec.clone(), builtin::driver(spec.protocol), Some(watch))?;
    let work = |control: &mut Control<'_>| {
        control.open()?;
        let zero = Instant::now();
        began.set(Some(zero));
        let (window_ns, stopped) = control.measure(zero)?;
        Ok::<_, Ended>((control.finish()?, window_ns, stopped))
    };
    let (outcome, window_ns, stopped) = work(&mut control)?;
    let (requests, errors) = outcome.results.counts();
    Ok(LoadResult {
        results: outcome.results,
        window_ns,
        stopped,
        requests,
        errors,
        first_failure: outcome.first_failure.map(|Failure { kind, message }| format!("{kind}: {message}")),
        configured: outcome.configured,
    })
}
