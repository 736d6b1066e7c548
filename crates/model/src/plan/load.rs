//! The load of a trial: who sends how much, when, and how long.

use crate::spec::{ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule, Timeouts};
use crate::units::Span;

/// The load of a trial. Connections, schedule and numbers of requests are totals over all clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// Number of clients that share the workload.
    pub clients: u32,
    /// The connection policy.
    pub connections: ConnectionPolicy,
    /// The schedule of requests.
    pub schedule: Schedule,
    /// Length of the measured window.
    pub extent: Extent,
    /// Length of the warm-up.
    pub warm_up: Option<Extent>,
    /// Whether the warm-up ends as soon as response times are steady; its length is then the longest.
    pub until_steady: bool,
    /// TLS session resumption policy for new connections.
    pub resumption: Resumption,
    /// Time-outs.
    pub timeouts: Timeouts,
    /// Aborts the trial after consecutive time-outs for this long.
    pub stall_timeout: Span,
    /// Form of the records.
    pub recording: Recording,
    /// Number of threads of each client; absent: the library's default.
    pub threads: Option<u16>,
}

/// Default of `stall_timeout`.
#[must_use]
pub const fn ten_minutes() -> Span {
    Span::from_secs(600)
}

impl Load {
    /// One worker that sends one request over a new connection.
    #[must_use]
    pub const fn plain() -> Self {
        Self {
            clients: 1,
            connections: ConnectionPolicy::PerRequest,
            schedule: Schedule::Closed { workers: 1, pause: Pause::None },
            extent: Extent::Requests(1),
            warm_up: None,
            until_steady: false,
            resumption: Resumption::None,
            timeouts: Timeouts { connect_ns: 1_000_000_000, request_ns: 2_000_000_000 },
            stall_timeout: ten_minutes(),
            recording: Recording::Samples,
            threads: None,
        }
    }

    /// Returns the load of a single client, an equal part of the whole. The plan refuses totals that are not
    /// divisible.
    #[must_use]
    pub fn of_one_client(&self) -> Self {
        let part = |extent| match extent {
            Extent::Requests(requests) => Extent::Requests(requests / u64::from(self.clients)),
            duration @ Extent::DurationNs(_) => duration,
        };
        Self {
            clients: 1,
            connections: match self.connections {
                ConnectionPolicy::PerRequest => ConnectionPolicy::PerRequest,
                ConnectionPolicy::Persistent { connections, streams } => {
                    ConnectionPolicy::Persistent { connections: connections / self.clients, streams }
                }
            },
            schedule: match self.schedule {
                Schedule::Closed { workers, pause } => Schedule::Closed { workers: workers / self.clients, pause },
                // The sum of Poisson processes is a Poisson process with the sum of their rates.
                Schedule::Open { rate_per_s, arrivals } => {
                    Schedule::Open { rate_per_s: rate_per_s / f64::from(self.clients), arrivals }
                }
            },
            extent: part(self.extent),
            warm_up: self.warm_up.map(part),
            ..self.clone()
        }
    }
}
