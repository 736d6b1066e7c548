//! Labs: they start endpoints as processes and connect them by a network.
//!
//! Each lab has a file or folder beside the trait [`Lab`]. A lab knows processes and networks, but no protocol and no
//! statistics.

mod deadline;
pub mod endpoints;
pub mod fake;
mod folder;
pub mod guard;
pub mod internet;
mod lines;
mod log;
pub mod loopback;
pub mod many;
mod names;
pub mod netns;
pub mod probe;
pub mod process;
mod reap;

use std::net::IpAddr;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Event};
use wirelab_model::journal::LinkRecord;
use wirelab_model::metric::Values;
use wirelab_model::network::Vantage;
use wirelab_model::outcome::Blame;
use wirelab_model::plan::{Job, Trial};
pub use wirelab_model::usage::Usage;
use wirelab_model::warning::Warning;

pub use fake::Fake;
pub use folder::Folder;
pub use guard::Guard;
pub use internet::Internet;
pub use lines::Lines;
pub use log::Log;
pub use loopback::Loopback;
pub use netns::Netns;
pub use netns::metrics::METRICS;
pub use probe::refuses_unknown_protocol;
pub use process::LocalProcess;
pub use reap::reap;

/// Static facts about a lab.
#[derive(Debug, Clone, Copy)]
pub struct LabInfo {
    /// Name in study files and on the command line.
    pub name: &'static str,
    /// One-sentence summary.
    pub summary: &'static str,
    /// Required privilege or kernel feature, if any.
    pub needs: Option<&'static str>,
    /// Whether the lab supports a job, regardless of machine or cluster; the error says what to change.
    pub can_be: fn(&Job) -> Result<(), LabError>,
}

/// A place in which trials run.
pub trait Lab: Send {
    /// Name on the command line and in study files.
    fn name(&self) -> &'static str;

    /// Warnings for the report of every run in this lab.
    fn warnings(&self) -> Vec<Warning>;

    /// Whether the lab supports the job. Called before anything is created.
    ///
    /// # Errors
    /// If the lab does not support the job; the message says what to change.
    fn check(&self, job: &Job) -> Result<(), LabError> {
        self.addresses(job).map(drop)
    }

    /// Prepares a session. The default does nothing, for labs that set up each trial when it begins.
    ///
    /// # Errors
    /// If the lab cannot be set up, or `stop` was raised meanwhile.
    fn prepare(&mut self, _preparation: &Preparation<'_>) -> Result<(), LabError> {
        Ok(())
    }

    /// The addresses of a trial: one for each server (with a timeline, for all servers of its course), and the
    /// address that the client connects to. They may change at [`Lab::begin_trial`].
    ///
    /// # Errors
    /// If the lab lacks the placement; the message lists the supported ones.
    fn addresses(&self, job: &Job) -> Result<Addresses, LabError>;

    /// Begins a trial: later starts belong to it. The default does nothing.
    ///
    /// # Errors
    /// If the network cannot be set up for the job.
    fn begin_trial(&mut self, _trial: &Trial, _job: &Job) -> Result<(), LabError> {
        Ok(())
    }

    /// Publishes the initial servers, which listen on these ports, in server order. Returns the port for the client.
    ///
    /// # Errors
    /// If the trial needs a service and it cannot be created.
    fn publish(&mut self, _job: &Job, ports: &[u16]) -> Result<u16, LabError> {
        Ok(ports[0])
    }

    /// Routes clients to exactly these servers, given by number and port, behind the address of the service or the
    /// server name. Used in trials with a timeline.
    ///
    /// # Errors
    /// If the network cannot be changed, or the lab has no timelines.
    fn reach(&mut self, _job: &Job, _servers: &[(u32, u16)]) -> Result<(), LabError> {
        Err(LabError(format!("the lab `{}` has no timelines; use the lab `netns` or `kubernetes`", self.name())))
    }

    /// Whether clients are routed to exactly the servers of the last [`Lab::reach`]. Polled until it returns true.
    ///
    /// # Errors
    /// If this state will never be reached.
    fn is_reached(&mut self) -> Result<bool, LabError> {
        Ok(true)
    }

    /// Addresses for the sidecars of the servers, in server order, in a trial with a mesh. The servers are then
    /// reachable only from their own hosts, and so is the client sidecar.
    ///
    /// # Errors
    /// If the lab has no sidecars; the trial is then unsupported.
    fn sidecars(&self, _job: &Job) -> Result<Vec<IpAddr>, LabError> {
        let remedy = "use the lab `netns` or `kubernetes`, or leave `mesh` out";
        Err(LabError(format!("the lab `{}` has no sidecars; {remedy}", self.name())))
    }

    /// Address that the control plane binds and clients connect to, in a trial with one.
    ///
    /// # Errors
    /// If the lab cannot run a control plane; the trial is then unsupported.
    fn control_plane(&self, _job: &Job) -> Result<IpAddr, LabError> {
        let remedy = "use the lab `netns` or `kubernetes`, or leave `control_plane` out";
        Err(LabError(format!("the lab `{}` has no control planes; {remedy}", self.name())))
    }

    /// Ends the measured window of a trial of this cell. Returns network metrics and warnings.
    ///
    /// # Errors
    /// If the network deviated from the job, so that the trial is invalid.
    fn end_trial(&mut self, _cell: &str) -> Result<Aftermath, LabError> {
        Ok(Aftermath::default())
    }

    /// Measures the links of these jobs, each distinct link once, while nothing else uses them. Empty in labs without
    /// emulated links.
    ///
    /// # Errors
    /// If the measurement fails. A link that deviates from its specification is not an error.
    fn measure_links(&mut self, _jobs: &[&Job], _seed: u64) -> Result<Vec<LinkRecord>, LabError> {
        Ok(Vec::new())
    }

    /// Network interfaces that only packets of this job pass. Empty in labs that share their interfaces with other
    /// programs.
    fn vantages(&self, _job: &Job) -> Vec<Vantage> {
        Vec::new()
    }

    /// Returns an observer that runs beside the remote processes, for the observers of these names. `None` if local
    /// observers can see the processes, or if none can. Call it when all endpoints of the trial run and wait.
    ///
    /// # Errors
    /// If the connection to the lab is lost.
    fn observe(&mut self, _observers: &[&str]) -> Result<Option<Box<dyn RemoteObserver>>, LabError> {
        Ok(None)
    }

    /// Starts an endpoint. The calling thread must outlive the trial (see [`LocalProcess`]).
    ///
    /// # Errors
    /// If the process cannot be started.
    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError>;

    /// Starts several endpoints; the processes are in the same order. Labs with slow starts do many at a time.
    ///
    /// # Errors
    /// If one start fails; the processes that were started are killed.
    fn start_all(&mut self, launches: &[Launch<'_>]) -> Result<Vec<Box<dyn Process>>, LabError> {
        launches.iter().map(|launch| self.start(launch)).collect()
    }
}

/// Requirements of a session.
#[derive(Debug, Clone, Copy)]
pub struct Preparation<'a> {
    /// Jobs of its trials.
    pub jobs: &'a [&'a Job],
    /// Absolute path of the run folder, which contains all paths of the specs.
    pub folder: &'a Path,
    /// Raised when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// Folder of the sockets at which endpoints report counters, and the port that remote hosts export them on for
    /// Prometheus. `None`: no export.
    pub metrics: Option<(&'a Path, u16)>,
}

/// Addresses of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Bind address of each server; empty if no server is started.
    pub servers: Vec<IpAddr>,
    /// Address that the client connects to.
    pub connect: IpAddr,
}

/// Observations of a lab about the network during a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Aftermath {
    /// Values of the lab's metrics.
    pub values: Values,
    /// Warnings for the report.
    pub warnings: Vec<Warning>,
}

/// An endpoint to start in a role.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Server, client, sidecar or control plane.
    pub role: Role,
    /// Index of the server or client, from 0; a sidecar has the index of its server.
    pub number: u32,
    /// What to start.
    pub endpoint: &'a Endpoint,
    /// Job of the trial; determines where the endpoint starts.
    pub job: &'a Job,
    /// Path of the spec file, which already exists.
    pub spec: &'a Path,
    /// Log file for standard error (bounded; a cut is marked).
    pub log: &'a Path,
}

/// Role of an endpoint process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Answers requests.
    Server,
    /// Sends requests.
    Client,
    /// Forwards requests of others.
    Sidecar(Beside),
    /// Tells clients which servers to use.
    ControlPlane,
}

/// Position of a sidecar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Beside {
    /// Beside one server.
    Server,
    /// Beside the clients, shared by all of them.
    Clients,
}

impl Role {
    /// Role name on an endpoint's command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Sidecar(_) => "sidecar",
            Self::ControlPlane => "control-plane",
        }
    }

    /// Role to blame for misbehaviour.
    #[must_use]
    pub const fn blame(self) -> Blame {
        match self {
            Self::Server => Blame::Server,
            Self::Client => Blame::Client,
            Self::Sidecar(_) => Blame::Sidecar,
            Self::ControlPlane => Blame::ControlPlane,
        }
    }
}

/// Observers that run beside processes which are invisible from this machine.
pub trait RemoteObserver: Send {
    /// Begins the measured window, while all endpoints wait.
    fn begin(&mut self);

    /// Ends the measured window, while all endpoints wait.
    fn end(&mut self);

    /// Observed values, or the reasons for missing ones. Takes the window length, and the number and bytes of
    /// successful requests.
    fn values(&mut self, window_ns: u64, requests: u64, bytes: u64) -> Values;
}

/// A running endpoint. Drop kills it with all its descendants, and reaps it.
pub trait Process: Send {
    /// Waits for the next event on its standard output until the deadline.
    ///
    /// # Errors
    /// See [`EventError`].
    fn next_event(&mut self, deadline: Instant) -> Result<Event, EventError>;

    /// Writes a command to its standard input.
    ///
    /// # Errors
    /// If the process has closed its standard input or has ended.
    fn send(&mut self, command: Command) -> Result<(), LabError>;

    /// Process id, if observers on this machine can inspect the process.
    fn pid(&self) -> Option<u32>;

    /// Whether the process runs in real time. False in labs that simulate time; true for every process with an id.
    fn has_clock(&self) -> bool {
        self.pid().is_some()
    }

    /// Closes its standard input and waits for its exit; kills it at the deadline.
    fn end(&mut self, deadline: Instant) -> Exit;
}

/// Why no event is available.
#[derive(Debug, Clone, PartialEq)]
pub enum EventError {
    /// The deadline passed.
    Deadline,
    /// The process ended first.
    Ended(Exit),
    /// Invalid output (shortened): not an event, an overlong line, or too many lines.
    Nonsense(String),
}

/// Exit of a process.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    /// Exit status.
    pub status: ExitStatus,
    /// Resource usage of the process and the descendants that it waited for, from the kernel; absent in labs without
    /// it.
    pub usage: Option<Usage>,
    /// Last lines of its standard error, for messages.
    pub last_words: String,
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// Exited with this status.
    Code(i32),
    /// Killed by a signal that wirelab did not send.
    Signal(i32),
    /// Killed by wirelab, because it did not exit in time.
    Killed,
    /// Unknown: the connection to its host was lost first. The last words give the cause.
    Lost,
}

/// An action that a lab failed to do; the text names the attempt and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabError(pub String);

impl std::fmt::Display for LabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LabError {}
