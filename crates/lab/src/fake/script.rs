//! Scripts of the fake lab.

use std::fmt;

use wirelab_model::outcome::ErrorKind;
use wirelab_model::plan::{ENGINE, Job, Requests};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::ConnectionPolicy;

use crate::Role;

type Effect = Box<dyn Fn(&Job, u64) -> f64 + Send>;
type Planted = Box<dyn Fn(&Case<'_>) -> f64 + Send>;
type Trouble = Box<dyn Fn(&Case<'_>) -> Option<(Moment, Misbehaviour)> + Send>;

/// Behaviour of processes in the fake lab.
pub struct Script {
    effect: Effect,
    planted: Planted,
    trouble: Trouble,
    /// Scatter of measurements.
    pub noise: Noise,
    /// Share of requests that fail: lost (UDP) or timed out (other protocols).
    pub failed_requests: f64,
    /// Seed of effects that trials share, such as those of blocks.
    pub seed: u64,
}

/// Scatter of measurements. All effects multiply. Standard deviations are those of the natural logarithm, so 0.03
/// means about 3 %.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// Standard deviation between the requests of a trial.
    pub request: f64,
    /// Standard deviation between trials of a cell within a block, for example from process start and memory layout.
    pub trial: f64,
    /// Standard deviation between blocks, for changes of the machine over minutes. Equal for all trials of a block.
    pub block: f64,
    /// Relative change from each trial to the next; 0.001 makes the hundredth trial 10 % slower than the first.
    pub drift: f64,
    /// Share of requests that take much longer.
    pub spikes: f64,
    /// Factor of their duration.
    pub spike_factor: f64,
}

impl Noise {
    /// No noise: every request takes exactly the median.
    pub const NONE: Self = Self { request: 0.0, trial: 0.0, block: 0.0, drift: 0.0, spikes: 0.0, spike_factor: 1.0 };
}

impl Default for Noise {
    /// As on an idle virtual machine's loopback interface.
    fn default() -> Self {
        Self { request: 0.15, trial: 0.03, block: 0.03, drift: 0.0, spikes: 0.005, spike_factor: 8.0 }
    }
}

/// Inputs of a script's decisions.
#[derive(Debug, Clone, Copy)]
pub struct Case<'a> {
    /// Job of the trial.
    pub job: &'a Job,
    /// Role of the process.
    pub role: Role,
    /// Seed of the trial.
    pub seed: u64,
    /// Number of the trial.
    pub number: u32,
    /// Block of the trial.
    pub block: u32,
    /// Cell number of the trial.
    pub cell: usize,
}

/// Moment of a misbehaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// In place of `ready`.
    Start,
    /// Client: in place of `warm`. All others: right after `ready`.
    Check,
    /// Client: in place of `end`. All others: as [`Moment::Check`], because they do not see the window.
    Window,
    /// Sidecar, control plane: in place of `reached`.
    Reach,
    /// In place of `done`; the client writes no results.
    Finish,
}

/// Misbehaviour of a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Misbehaviour {
    /// Exits with this status, silently.
    Exits(i32),
    /// Ends by a signal.
    Dies(i32),
    /// Stops responding. Deadlines pass at once.
    Hangs,
    /// Prints this text, which is not an event.
    Nonsense(String),
    /// Prints `error` and exits with status 1.
    Fails(ErrorKind, String),
    /// Prints `unsupported` and exits with status 127.
    Unsupported(String),
}

impl Script {
    /// A script without misbehaviour. `effect` returns the median service time of a request in nanoseconds, including
    /// the connection, for a job and trial seed.
    pub fn new(effect: impl Fn(&Job, u64) -> f64 + Send + 'static) -> Self {
        Self {
            effect: Box::new(effect),
            planted: Box::new(|_| 1.0),
            trouble: Box::new(|_| None),
            noise: Noise::default(),
            failed_requests: 0.0,
            seed: 1,
        }
    }

    /// The script of `wirelab run --lab fake`: plausible latencies, for previewing reports.
    #[must_use]
    pub fn plausible() -> Self {
        Self::new(|job, _| plausible_median(job))
    }

    /// Sets the noise.
    #[must_use]
    pub const fn with_noise(mut self, noise: Noise) -> Self {
        self.noise = noise;
        self
    }

    /// Multiplies medians by `planted`: a difference that no setting causes, for example between two levels that set
    /// nothing.
    #[must_use]
    pub fn with_planted(mut self, planted: impl Fn(&Case<'_>) -> f64 + Send + 'static) -> Self {
        self.planted = Box::new(planted);
        self
    }

    /// Adds the misbehaviours that `trouble` returns.
    #[must_use]
    pub fn with_trouble(
        mut self,
        trouble: impl Fn(&Case<'_>) -> Option<(Moment, Misbehaviour)> + Send + 'static,
    ) -> Self {
        self.trouble = Box::new(trouble);
        self
    }

    pub(super) fn median(&self, case: &Case<'_>) -> f64 {
        (self.effect)(case.job, case.seed) * (self.planted)(case)
    }

    pub(super) fn misbehaviour(&self, case: &Case<'_>) -> Option<(Moment, Misbehaviour)> {
        (self.trouble)(case)
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Script")
            .field("noise", &self.noise)
            .field("failed_requests", &self.failed_requests)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// Invented values in the order of magnitude of a loopback interface, not a measurement.
fn plausible_median(job: &Job) -> f64 {
    const MICROS: f64 = 1e3;
    let (request, connect, per_byte) = match job.protocol {
        Protocol::Udp => (45.0, 0.0, 0.6),
        Protocol::Tcp => (50.0, 60.0, 0.3),
        Protocol::Tls => (60.0, 700.0, 0.9),
        Protocol::Quic => (110.0, 900.0, 2.2),
        Protocol::H1c => (75.0, 60.0, 0.4),
        Protocol::H1 => (85.0, 700.0, 1.0),
        Protocol::H2c => (95.0, 90.0, 0.6),
        Protocol::H2 => (105.0, 740.0, 1.3),
        Protocol::H3 => (160.0, 950.0, 2.5),
        Protocol::Grpcc => (110.0, 90.0, 0.6),
        Protocol::Grpc => (120.0, 740.0, 1.3),
    };
    let connecting = if job.load.connections == ConnectionPolicy::PerRequest { connect } else { 0.0 };
    let delay = job.requests().map_or(0, Requests::least_delay_ns) as f64;
    let bytes = job.work.body_sizes().map(|size| size.bytes() as f64).iter().sum::<f64>();
    let all = (request + connecting) * MICROS + bytes * per_byte + delay;
    // Against the null server: the client's share.
    if job.server().is_some_and(|server| server == ENGINE) { all * 0.6 } else { all }
}
