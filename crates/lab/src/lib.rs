//! Where trials run: the place that starts endpoints as processes and connects them.
//!
//! One file (or folder) per lab beside the trait that it implements. A lab knows processes and networks; it knows no
//! protocol and no statistics.

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

/// What there is to say of a lab.
#[derive(Debug, Clone, Copy)]
pub struct LabInfo {
    /// Its name in study files and on the command line.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// The privilege or kernel feature that it needs; absent: none.
    pub needs: Option<&'static str>,
    /// Whether the lab can be what a job says, on whatever machine or cluster; the error says what to change.
    pub can_be: fn(&Job) -> Result<(), LabError>,
}

/// A place in which trials run.
pub trait Lab: Send {
    /// The word for it on the command line and in study files.
    fn name(&self) -> &'static str;

    /// What a report must say of every run in this lab.
    fn warnings(&self) -> Vec<Warning>;

    /// Whether the lab can be what a job says. Asked before anything is made.
    ///
    /// # Errors
    /// If it cannot; the message says what to change.
    fn check(&self, job: &Job) -> Result<(), LabError> {
        self.addresses(job).map(drop)
    }

    /// A session is about to begin. Labs that make what a trial needs when it begins do nothing.
    ///
    /// # Errors
    /// If the place cannot be made, or `stop` was raised meanwhile.
    fn prepare(&mut self, _preparation: &Preparation<'_>) -> Result<(), LabError> {
        Ok(())
    }

    /// The addresses of a trial: those that the servers bind, in a timeline all that ever come, and the one that the client connects
    /// to. They may change when it begins.
    ///
    /// # Errors
    /// If the lab has no such placement; the message names those that it has.
    fn addresses(&self, job: &Job) -> Result<Addresses, LabError>;

    /// A trial is about to begin: what is started from now on belongs to it. Labs that do not care do nothing.
    ///
    /// # Errors
    /// If the network cannot be made what the job says.
    fn begin_trial(&mut self, _trial: &Trial, _job: &Job) -> Result<(), LabError> {
        Ok(())
    }

    /// The servers with which the trial begins listen at these ports, in their order. Gives the port that the client connects to.
    ///
    /// # Errors
    /// If there is to be a service, and it cannot be made.
    fn publish(&mut self, _job: &Job, ports: &[u16]) -> Result<u16, LabError> {
        Ok(ports[0])
    }

    /// From now on clients are to find these servers, each by its number and port, in a trial with a timeline: behind the address of the
    /// service or the name.
    ///
    /// # Errors
    /// If the network cannot be changed, or the lab has no timelines.
    fn reach(&mut self, _job: &Job, _servers: &[(u32, u16)]) -> Result<(), LabError> {
        Err(LabError(format!("the lab `{}` has no timelines; use the lab `netns` or `kubernetes`", self.name())))
    }

    /// Whether clients find the servers of the last [`Lab::reach`] by now, and no others. Asked again and again until they do.
    ///
    /// # Errors
    /// If they never will.
    fn is_reached(&mut self) -> Result<bool, LabError> {
        Ok(true)
    }

    /// The addresses that the sidecars of the servers bind, in a trial with a mesh, in the order of the servers. The servers themselves
    /// are then reached from their own hosts only, and so is the sidecar of the clients.
    ///
    /// # Errors
    /// If the lab has no sidecars, so that such a trial is unsupported.
    fn sidecars(&self, _job: &Job) -> Result<Vec<IpAddr>, LabError> {
        let remedy = "use the lab `netns` or `kubernetes`, or leave `mesh` out";
        Err(LabError(format!("the lab `{}` has no sidecars; {remedy}", self.name())))
    }

    /// The address that the control plane binds and clients ask, in a trial with one.
    ///
    /// # Errors
    /// If the lab has no place for it, so that such a trial is unsupported.
    fn control_plane(&self, _job: &Job) -> Result<IpAddr, LabError> {
        let remedy = "use the lab `netns` or `kubernetes`, or leave `control_plane` out";
        Err(LabError(format!("the lab `{}` has no control planes; {remedy}", self.name())))
    }

    /// The measured window of a trial of this cell has ended. What there is to say of the network in it.
    ///
    /// # Errors
    /// If the network was not what the job says, so that the trial does not count.
    fn end_trial(&mut self, _cell: &str) -> Result<Aftermath, LabError> {
        Ok(Aftermath::default())
    }

    /// Measures what the links of these jobs really do, each once, while nothing else uses them. Labs without links of their
    /// own have none to measure.
    ///
    /// # Errors
    /// If measuring fails. A link that misbehaves is no error.
    fn measure_links(&mut self, _jobs: &[&Job], _seed: u64) -> Result<Vec<LinkRecord>, LabError> {
        Ok(Vec::new())
    }

    /// The interfaces at which the packets of a job can be looked at, and no others' packets pass. Labs that share their
    /// interfaces with other programs have none.
    fn vantages(&self, _job: &Job) -> Vec<Vantage> {
        Vec::new()
    }

    /// The endpoints of the trial run, and wait. Somebody who observes their processes from where they are, by the names of the observers
    /// that are wanted; absent where observers see them here, or nobody can.
    ///
    /// # Errors
    /// If the lab is lost.
    fn observe(&mut self, _observers: &[&str]) -> Result<Option<Box<dyn RemoteObserver>>, LabError> {
        Ok(None)
    }

    /// Starts an endpoint. To be called from a thread that outlives the trial (see [`LocalProcess`]).
    ///
    /// # Errors
    /// If the process cannot be started.
    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError>;

    /// Starts several, as [`Lab::start`] does; the processes are in their order. Labs in which a start is mostly waiting do many at a
    /// time.
    ///
    /// # Errors
    /// If one of them cannot be started; those that were are killed.
    fn start_all(&mut self, launches: &[Launch<'_>]) -> Result<Vec<Box<dyn Process>>, LabError> {
        launches.iter().map(|launch| self.start(launch)).collect()
    }
}

/// What a session is going to need.
#[derive(Debug, Clone, Copy)]
pub struct Preparation<'a> {
    /// What its trials do.
    pub jobs: &'a [&'a Job],
    /// The run's folder, absolute: whatever specs name is below it.
    pub folder: &'a Path,
    /// Raised when the user wants to stop.
    pub stop: &'a AtomicBool,
    /// Where endpoints tell what they have counted, and the port at which hosts of their own show it to Prometheus; absent: nobody
    /// wants to know.
    pub metrics: Option<(&'a Path, u16)>,
}

/// The addresses of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// What each server binds; none where no server is started.
    pub servers: Vec<IpAddr>,
    /// What the client connects to.
    pub connect: IpAddr,
}

/// What a lab has to say of the network in a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Aftermath {
    /// The values of its metrics.
    pub values: Values,
    /// What the report has to say.
    pub warnings: Vec<Warning>,
}

/// An endpoint to start in a role.
#[derive(Debug, Clone, Copy)]
pub struct Launch<'a> {
    /// Server, client, sidecar or control plane.
    pub role: Role,
    /// Which of the servers or clients, from 0; a sidecar has the number of its server.
    pub number: u32,
    /// What to start.
    pub endpoint: &'a Endpoint,
    /// What the trial does; says where to start it.
    pub job: &'a Job,
    /// The spec file, already written.
    pub spec: &'a Path,
    /// Where its standard error goes (bounded; a cut is marked).
    pub log: &'a Path,
}

/// The role that an endpoint plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// It serves.
    Server,
    /// It sends requests.
    Client,
    /// It sends on the requests of others.
    Sidecar(Beside),
    /// It tells the clients who serves.
    ControlPlane,
}

/// Beside whom a sidecar is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Beside {
    /// A server.
    Server,
    /// The clients, all of them.
    Clients,
}

impl Role {
    /// The word on an endpoint's command line.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
            Self::Sidecar(_) => "sidecar",
            Self::ControlPlane => "control-plane",
        }
    }

    /// Who is to blame if it misbehaves.
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

/// Observers at work where the processes are, which are not to be seen here.
pub trait RemoteObserver: Send {
    /// The measured window is about to begin: all endpoints wait.
    fn begin(&mut self);

    /// It has just ended: all endpoints wait.
    fn end(&mut self);

    /// What they measured, or the reasons why not, with the length of the window, and the requests that succeeded in it with their bytes.
    fn values(&mut self, window_ns: u64, requests: u64, bytes: u64) -> Values;
}

/// A running endpoint. Dropping it kills it, with all its descendants, and reaps it.
pub trait Process: Send {
    /// Waits for the next line of its standard output until the deadline.
    ///
    /// # Errors
    /// See [`EventError`].
    fn next_event(&mut self, deadline: Instant) -> Result<Event, EventError>;

    /// Writes a word to its standard input.
    ///
    /// # Errors
    /// If it has closed its standard input or has ended.
    fn send(&mut self, command: Command) -> Result<(), LabError>;

    /// The process id, where observers on this machine can look at it.
    fn pid(&self) -> Option<u32>;

    /// Whether time passes for it as it does here. In a lab without a clock it does not; one that has a process id does.
    fn has_clock(&self) -> bool {
        self.pid().is_some()
    }

    /// Closes its standard input and waits for its end; kills it at the deadline.
    fn end(&mut self, deadline: Instant) -> Exit;
}

/// Why there is no event.
#[derive(Debug, Clone, PartialEq)]
pub enum EventError {
    /// The deadline passed.
    Deadline,
    /// The process ended first.
    Ended(Exit),
    /// It printed something that is not an event (the line, shortened), too long a line, or too many lines.
    Nonsense(String),
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Exit {
    /// How.
    pub status: ExitStatus,
    /// The kernel's account of it and of the descendants that it waited for; absent in labs without it.
    pub usage: Option<Usage>,
    /// The last lines of its standard error, for the message.
    pub last_words: String,
}

/// The way a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitStatus {
    /// By itself, with this status.
    Code(i32),
    /// By a signal that was not ours.
    Signal(i32),
    /// It did not end by itself in time, and was killed.
    Killed,
    /// Nobody knows: the place that it ran in was lost first. The last words say how.
    Lost,
}

/// What a lab could not do; the text names the attempt and the remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabError(pub String);

impl std::fmt::Display for LabError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for LabError {}
