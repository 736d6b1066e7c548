//! What is counted while a trial runs, from outside the endpoints. One file per observer; each declares its metrics, its
//! cost and the privileges that it needs.

pub mod apart;
pub mod cpu;
pub mod drops;
pub mod faults;
pub mod film;
pub mod machine;
pub mod memory;
pub mod packets;
pub mod prometheus;
mod registry;
pub mod rusage;
pub mod sidecars;
pub mod switches;
pub mod syscalls;
pub mod tcp;
mod tree;
mod window;
pub mod witness;

use std::path::{Path, PathBuf};

use wirelab_model::metric::{Metric, Values};
use wirelab_model::network::Vantage;
use wirelab_model::usage::Usage;

pub use prometheus::Exporter;
pub use registry::{OBSERVERS, create, default_set, metrics, unknown};
pub use witness::Witness;

/// An instrument. It lives for one trial.
pub trait Observer: Send {
    /// Its declaration.
    fn about(&self) -> &'static About;

    /// What it does to what it observes, where that is so much that nothing else that is measured in the same trial holds: the rest of
    /// a sentence that begins with its name.
    fn distorts(&self) -> Option<&'static str> {
        None
    }

    /// The client is about to send its first packet: both processes wait.
    fn prepare(&mut self, _stage: &Stage<'_>) {}

    /// The measured window is about to begin: both processes wait.
    fn begin(&mut self, targets: &Targets);

    /// The measured window has just ended: both processes wait.
    fn end(&mut self, targets: &Targets);

    /// Both processes have ended, and this is the kernel's account of each.
    fn reaped(&mut self, _reaped: &Reaped) {}

    /// The values, after both processes were reaped. Every metric that it declares is there: measured, or with the reason why not.
    fn values(&mut self, window: &Window) -> Values;
}

/// The declaration of an observer.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its name in study files.
    pub name: &'static str,
    /// What it gives, in one sentence.
    pub summary: &'static str,
    /// What it costs the trial, in one sentence.
    pub cost: &'static str,
    /// The privilege or kernel feature that it needs; absent: none.
    pub needs: Option<&'static str>,
    /// Whether studies that name no observers have it: it needs no privilege for what it mainly gives, and hardly costs anything.
    pub by_default: bool,
    /// The metrics that it produces.
    pub metrics: &'static [Metric],
}

/// What to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Targets {
    /// The servers' processes; absent where the lab cannot show them.
    pub servers: Option<Vec<u32>>,
    /// The clients' processes; absent where the lab cannot show them.
    pub clients: Option<Vec<u32>>,
    /// The sidecars' processes; absent where there are none.
    pub sidecars: Option<Sidecars>,
    /// The control plane's process; absent where there is none, and where the lab cannot show it, which then shows no client either.
    pub control_plane: Option<u32>,
}

/// The sidecars' processes; absent where the lab cannot show them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sidecars {
    /// Those beside the servers.
    pub of_servers: Option<Vec<u32>>,
    /// Those beside the clients.
    pub of_clients: Option<Vec<u32>>,
}

/// What there is before the client sends its first packet.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// The interfaces at which packets can be looked at.
    pub vantages: &'a [Vantage],
    /// Who can look at networks from within.
    pub witness: &'a Witness,
    /// Where captures of the trial go, if they are wanted.
    pub captures: Option<&'a Captures>,
    /// Where the client leaves films of the pages that it loads, if they are wanted.
    pub films: Option<&'a Path>,
}

/// Captures of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures {
    /// Their path but for its end: `-client.pcapng`, `-server-node.pcapng`.
    pub stem: PathBuf,
    /// The key log that the client writes, to be put into them; absent: the protocol has no TLS.
    pub keys: Option<PathBuf>,
}

/// The kernel's accounts of the processes after their end. A process that the lab does not reap has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// That of the servers together.
    pub server: Option<Usage>,
    /// That of the clients together.
    pub client: Option<Usage>,
}

/// What happened in the measured window, for values per request and per byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its length.
    pub ns: u64,
    /// Requests that succeeded in it.
    pub requests: u64,
    /// Payload bytes of these, both directions.
    pub bytes: u64,
}
