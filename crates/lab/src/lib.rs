//! Labs: they start endpoints as processes and connect them by a network.
//!
//! Each lab has a file or folder beside the trait [`Lab`]. A lab knows processes and networks, but no protocol and no
//! statistics.
//!
//! Three types follow each other, and each has only the methods that are possible in its state: a [`Lab`] is prepared
//! for a session, a [`PreparedLab`] opens an arena for each trial, and an [`Arena`] starts the endpoints of that
//! trial.

mod arena;
pub mod congestion;
mod deadline;
pub mod endpoints;
mod error;
pub mod fake;
pub mod fixed_network;
mod folder;
pub mod guard;
pub mod internet;
mod lines;
mod local;
mod log;
pub mod loopback;
pub mod many;
mod names;
pub mod netns;
pub mod path;
pub mod probe;
pub mod process;
mod processors;
mod reap;
pub mod rights;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use wirelab_model::event::{Command, Event};
use wirelab_model::metric::Side;
use wirelab_model::outcome::Blame;
use wirelab_model::plan::Job;
pub use wirelab_model::reason::ExitStatus;
use wirelab_model::settings::Settings;
use wirelab_model::spec::Congestion;
pub use wirelab_model::usage::Usage;
use wirelab_model::warning::Warning;

pub use arena::{Addresses, Aftermath, Arena, Launch, PreparedLab, RemoteObserver};
pub use error::LabError;
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
pub use processors::Confinement;
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
    /// Whether the lab executes endpoints. If not, any name is an endpoint, and none is asked to describe itself.
    pub starts_endpoints: bool,
    /// Settings that the lab sets if the study does not.
    pub defaults: fn() -> Settings,
    /// Whether endpoints can set a congestion control; true where this is unknown before the run.
    pub permits: fn(Congestion) -> bool,
    /// Whether the lab supports a job, regardless of machine or cluster; the error says what to change.
    pub supports: fn(&Job) -> Result<(), LabError>,
    /// Opens the lab.
    pub open: fn(&Opening<'_>) -> Result<Box<dyn Lab>, LabError>,
}

/// Facts that a lab may need to open.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// wirelab's executable, which the lab starts for helper processes such as the guard.
    pub program: &'a Path,
    /// The machines that the user named, for the lab `hosts`.
    pub hosts: Option<&'a str>,
    /// The folder of a run that is resumed.
    pub resumed: Option<&'a Path>,
}

impl<'a> Opening<'a> {
    /// Opens a lab that needs nothing but wirelab's executable.
    #[must_use]
    pub const fn by(program: &'a Path) -> Self {
        Self { program, hosts: None, resumed: None }
    }
}

/// A place in which trials run.
pub trait Lab: Send {
    /// Static facts.
    fn info(&self) -> &'static LabInfo;

    /// Warnings for the report of every run in this lab.
    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    /// Whether the lab supports the job on this machine or cluster. Called before anything is created.
    ///
    /// # Errors
    /// If the lab does not support the job; the message says what to change.
    fn check(&self, job: &Job) -> Result<(), LabError> {
        (self.info().supports)(job)
    }

    /// Prepares a session. Dropping the prepared lab removes what the preparation created.
    ///
    /// # Errors
    /// If the lab cannot be set up, or `stop` was raised meanwhile.
    fn prepare<'a>(&'a mut self, preparation: &Preparation<'_>) -> Result<Box<dyn PreparedLab + 'a>, LabError>;
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

impl Preparation<'_> {
    /// Path of a helper process's log, by its subcommand.
    #[must_use]
    pub fn log_of(&self, helper: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{helper}.log"))
    }
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

    /// Side to which the role belongs; a control plane runs beside the clients.
    #[must_use]
    pub const fn side(self) -> Side {
        match self {
            Self::Client | Self::Sidecar(Beside::Clients) | Self::ControlPlane => Side::Client,
            Self::Server | Self::Sidecar(Beside::Server) => Side::Server,
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
