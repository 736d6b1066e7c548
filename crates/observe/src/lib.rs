//! Observers: instruments that measure a trial from outside the endpoints. Each observer is a module that declares its
//! metrics, its cost and the privileges that it needs.

pub mod affinity;
mod bpf;
pub mod cpu;
pub mod drops;
pub mod exchanges;
pub mod faults;
pub mod film;
pub mod machine;
pub mod memory;
pub mod packets;
pub mod places;
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
use wirelab_model::missing::Missing;
use wirelab_model::network::Vantage;
use wirelab_model::usage::Usage;

pub use exchanges::Exchanges;
pub use prometheus::Exporter;
pub use registry::{OBSERVERS, create, default_set, metrics, unknown};
pub use witness::Witness;

/// An instrument. A new one is made for each trial.
pub trait Observer: Send {
    /// Name, cost and metrics.
    fn about(&self) -> &'static About;

    /// How the observer disturbs the trial, if so much that no other metric of the trial is valid. The text continues a
    /// sentence that begins with the observer's name.
    fn distorts(&self) -> Option<&'static str> {
        None
    }

    /// Called before the client sends its first packet, while both processes wait.
    fn prepare(&mut self, _stage: &Stage<'_>) {}

    /// Called before the measured window begins, while both processes wait.
    fn begin(&mut self, targets: &Targets);

    /// Called after the measured window ends, while both processes wait.
    fn end(&mut self, targets: &Targets);

    /// Called after both processes have ended, with the kernel's resource usage of each.
    fn reaped(&mut self, _reaped: &Reaped) {}

    /// The client's requests as the kernel saw them, after [`Observer::end`]; `None` if the observer did not see them.
    fn exchanges(&self) -> Option<&Exchanges> {
        None
    }

    /// The values, after [`Observer::reaped`]. Contains every declared metric, measured or with the reason why it is
    /// missing.
    fn values(&mut self, window: &Window) -> Values;
}

/// The declaration of an observer: its name, cost, needs and metrics.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// The name in study files.
    pub name: &'static str,
    /// The measured quantities, in one sentence.
    pub summary: &'static str,
    /// The cost for the trial, in one sentence.
    pub cost: &'static str,
    /// The privilege or kernel feature that the observer needs; `None`: nothing.
    pub needs: Option<&'static str>,
    /// Whether studies that name no observers use it. Such an observer needs no privilege for its main metrics and
    /// costs almost nothing.
    pub by_default: bool,
    /// The metrics that the observer gives.
    pub metrics: &'static [Metric],
}

/// The processes to observe, by process id.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Targets {
    /// The servers; `None` if the lab cannot show them.
    pub servers: Option<Vec<u32>>,
    /// The clients; `None` if the lab cannot show them.
    pub clients: Option<Vec<u32>>,
    /// The sidecars; `None` if the trial has none.
    pub sidecars: Option<Sidecars>,
    /// The control plane; `None` if the trial has none, or if the lab cannot show it. Such a lab shows no client
    /// either.
    pub control_plane: Option<u32>,
    /// The ports that the clients connect to.
    pub ports: Vec<u16>,
    /// Why an observer cannot separate the requests on a connection; `None` if each connection carries one request
    /// after the other.
    pub mixed: Option<Missing>,
}

/// The sidecars' processes, by side; `None` if the lab cannot show them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sidecars {
    /// The sidecars beside servers.
    pub of_servers: Option<Vec<u32>>,
    /// The sidecars beside clients.
    pub of_clients: Option<Vec<u32>>,
}

/// The surroundings of a trial, known before the client sends its first packet.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// The interfaces where packets can be captured.
    pub vantages: &'a [Vantage],
    /// The process that captures packets inside network namespaces.
    pub witness: &'a Witness,
    /// Where the trial's packet captures go; `None`: they are not kept.
    pub captures: Option<&'a Captures>,
    /// The folder of the client's films of page loads; `None`: loads are not filmed.
    pub films: Option<&'a Path>,
}

/// Where the packet captures of a trial go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captures {
    /// Their path without its ending: `-client.pcapng`, `-server-node.pcapng`.
    pub stem: PathBuf,
    /// The client's TLS key log, which is embedded into the captures; `None`: the protocol has no TLS.
    pub keys: Option<PathBuf>,
}

/// The kernel's resource usage of ended processes. A process that the lab does not reap has none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// The sum over all servers.
    pub server: Option<Usage>,
    /// The sum over all clients.
    pub client: Option<Usage>,
}

/// The measured window, for values per request and per byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Length in nanoseconds.
    pub ns: u64,
    /// Requests that succeeded in the window.
    pub requests: u64,
    /// Payload bytes of these requests, both directions.
    pub bytes: u64,
}
