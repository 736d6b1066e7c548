//! The load engine in this process, as `wirelab load` and `wirelab probe` run it.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::{Configured, WarmedUp};
use wirelab_contract::spec::{ClientSpec, Extent};
use wirelab_engine::intervals::{IntervalReader, Intervals};
use wirelab_engine::progress::Progress as ThreadProgress;

pub use crate::client::Results;
pub use wirelab_engine::intervals::Interval;

use crate::client::transport::Failure;
use crate::client::{Control, Ended, Watch};
use crate::describe::NAME;
use crate::file_limit::raise_file_limit;
use crate::refusal::Refusal;
use crate::{builtin, engine};

/// The client that sends the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// The built-in endpoint, with the libraries that it measures.
    Builtin,
    /// The load engine.
    Engine,
}

impl Client {
    /// The name, which is that of the endpoint.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Builtin => NAME,
            Self::Engine => engine::NAME,
        }
    }
}

/// Progress of a load, reported about ten times a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Time since the measured window began; absent while connections open and warm up.
    pub elapsed: Option<Duration>,
    /// Requests that ended in the window, failed ones included.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
}

/// News of a load in progress.
#[derive(Debug)]
pub enum News<'a> {
    Progress(Progress),
    /// An interval has passed.
    Interval(&'a Interval),
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoadResult {
    /// Records or histograms, by the spec.
    pub results: Results,
    /// Time from the beginning of the window to the end of its last request, in nanoseconds.
    pub window_ns: u64,
    /// Whether it was stopped early. The results then lack requests that were in flight.
    pub stopped: bool,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed, by kind.
    pub errors: IndexMap<ErrorKind, u64>,
    /// Requests that the server turned away in an orderly way (GOAWAY, REFUSED_STREAM), so that they went again. They
    /// are no failures.
    pub sent_again: u64,
    /// The message of the first failure.
    pub first_failure: Option<String>,
    /// Effective settings and negotiated parameters.
    pub configured: Configured,
    /// The end of a warm-up that lasts until response times are steady; absent for another one.
    pub warmed_up: Option<WarmedUp>,
}

/// Runs a client in this process: check request, connections, warm-up, measured window. Does not write `spec.results`.
///
/// Tells its progress, and each interval of the length `every` if that is given (not 0). Then each request is counted
/// twice (for the cost see docs/performance.md).
///
/// Checks `stop` about ten times a second. Set during the window, it ends the window with the results so far; set
/// earlier, it returns [`Refusal::Failed`].
///
/// # Errors
///
/// [`Refusal::Unsupported`] if the spec asks for something unsupported; [`Refusal::Failed`] if the check request or a
/// persistent connection failed. Failed requests of the window are results, not errors.
pub fn run(
    spec: &ClientSpec,
    client: Client,
    every: Option<Duration>,
    mut tell: impl FnMut(News<'_>),
    stop: &AtomicBool,
) -> Result<LoadResult, Refusal> {
    raise_file_limit();
    let began = Cell::new(None::<Instant>);
    let reader = RefCell::new(every.map(IntervalReader::new));
    let tell = RefCell::new(&mut tell);
    let tell_intervals =
        |intervals: Vec<Interval>| intervals.iter().for_each(|one| tell.borrow_mut()(News::Interval(one)));
    let look = Box::new(|requests, failed, threads: &[Arc<ThreadProgress>]| {
        let elapsed = began.get().map(|zero| zero.elapsed());
        // Where the window may have ended, only its end says how long its last interval was.
        let may_have_ended = |elapsed: Duration| match spec.extent {
            Extent::Requests(count) => requests >= count,
            Extent::DurationNs(ns) => elapsed >= Duration::from_nanos(ns),
        };
        if let (Some(reader), Some(elapsed)) = (reader.borrow_mut().as_mut(), elapsed)
            && !may_have_ended(elapsed)
        {
            tell_intervals(reader.passed(elapsed, intervals_of(threads)));
        }
        tell.borrow_mut()(News::Progress(Progress { elapsed, requests, failed }));
        stop.load(Ordering::Relaxed)
    });
    let watch = Watch { look, every };
    let driver = match client {
        Client::Builtin => builtin::driver(spec.protocol),
        Client::Engine => engine::driver(spec.protocol),
    };
    let mut control = Control::start(spec.clone(), driver, Some(watch))?;
    let work = |control: &mut Control<'_>| {
        control.open()?;
        let zero = Instant::now();
        began.set(Some(zero));
        let (window_ns, stopped) = control.measure(zero)?;
        if let Some(reader) = reader.borrow_mut().as_mut() {
            tell_intervals(reader.rest(Duration::from_nanos(window_ns), intervals_of(control.progress())));
        }
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
        sent_again: outcome.sent_again,
        first_failure: outcome.first_failure.map(|Failure { kind, message }| format!("{kind}: {message}")),
        configured: outcome.configured,
        warmed_up: control.warmed_up(),
    })
}

fn intervals_of(threads: &[Arc<ThreadProgress>]) -> impl Iterator<Item = &Intervals> {
    threads.iter().filter_map(|thread| thread.intervals.as_ref())
}
