//! A lab that is prepared for a session, and the arenas that it opens for trials.

use std::net::IpAddr;
use std::path::Path;

use wirelab_model::endpoint::Endpoint;
use wirelab_model::journal::LinkRecord;
use wirelab_model::metric::Values;
use wirelab_model::network::Vantage;
use wirelab_model::path::PathRecord;
use wirelab_model::plan::{Job, Trial};
use wirelab_model::units::BitRate;
use wirelab_model::warning::Warning;

use crate::{Confinement, LabError, LabInfo, Process, Role};

/// A lab during a session.
pub trait PreparedLab: Send {
    /// The addresses of a job's trials. They may change until a trial begins.
    ///
    /// # Errors
    /// If the lab lacks the placement; the message lists the supported ones.
    fn addresses(&self, job: &Job) -> Result<Addresses, LabError>;

    /// Checks that the lab's helper processes still run. Called before each trial.
    ///
    /// # Errors
    /// If one has ended: each further trial would fail, or leave processes behind after a crash.
    fn check_helpers(&self) -> Result<(), LabError> {
        Ok(())
    }

    /// Measures the links of these jobs, each distinct link once, while nothing else uses them. Empty in labs without
    /// emulated links.
    ///
    /// # Errors
    /// If the measurement fails. A link that deviates from its specification is not an error.
    fn measure_links(&mut self, _jobs: &[&Job], _seed: u64) -> Result<Vec<LinkRecord>, LabError> {
        Ok(Vec::new())
    }

    /// Whether [`PreparedLab::measure_paths`] measures.
    fn has_paths(&self) -> bool {
        false
    }

    /// Measures the network between the hosts of these jobs, each pair of hosts once, while nothing else of the run
    /// uses it. `load` is the largest load that the user allows. A path that cannot be measured carries the reason.
    /// Empty in labs on one machine.
    fn measure_paths(&mut self, _jobs: &[&Job], _load: Option<BitRate>) -> Vec<PathRecord> {
        Vec::new()
    }

    /// Sets up the network of a trial.
    ///
    /// # Errors
    /// If the network cannot be set up for the job.
    fn open<'a>(&'a mut self, trial: &Trial, job: &'a Job) -> Result<Box<dyn Arena + 'a>, LabError>;
}

/// The part of a lab that one trial uses. Drop ends the trial's network; the processes must have ended before.
pub trait Arena: Send {
    /// Static facts about the lab.
    fn info(&self) -> &'static LabInfo;

    /// The addresses of the trial.
    fn addresses(&self) -> &Addresses;

    /// Addresses for the sidecars of the servers, in server order, in a trial with a mesh. The servers are then
    /// reachable only from their own hosts, and so is the client sidecar.
    ///
    /// # Errors
    /// If the lab has no sidecars; the trial is then unsupported.
    fn sidecars(&self) -> Result<Vec<IpAddr>, LabError> {
        let remedy = "use the lab `netns` or `kubernetes`, or leave `mesh` out";
        Err(LabError::unsupported(format!("the lab `{}` has no sidecars", self.info().name)).remedy(remedy))
    }

    /// Address that the control plane binds and clients connect to, in a trial with one.
    ///
    /// # Errors
    /// If the lab cannot run a control plane; the trial is then unsupported.
    fn control_plane(&self) -> Result<IpAddr, LabError> {
        let remedy = "use the lab `netns` or `kubernetes`, or leave `control_plane` out";
        Err(LabError::unsupported(format!("the lab `{}` has no control planes", self.info().name)).remedy(remedy))
    }

    /// Starts an endpoint. The calling thread must outlive the trial (see [`LocalProcess`](crate::LocalProcess)).
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

    /// Publishes the initial servers, which listen on these ports, in server order. Returns the port for the client.
    ///
    /// # Errors
    /// If the trial needs a service and it cannot be created.
    fn publish(&mut self, ports: &[u16]) -> Result<u16, LabError> {
        Ok(ports[0])
    }

    /// Routes clients to exactly these servers, given by number and port, behind the address of the service or the
    /// server name. Used in trials with a timeline, after [`Arena::publish`].
    ///
    /// # Errors
    /// If the network cannot be changed, or the lab has no timelines.
    fn reach(&mut self, _servers: &[(u32, u16)]) -> Result<(), LabError> {
        Err(LabError::unsupported(format!("the lab `{}` has no timelines", self.info().name))
            .remedy("use the lab `netns` or `kubernetes`"))
    }

    /// Whether clients are routed to exactly the servers of the last [`Arena::reach`]. Polled until it returns true.
    ///
    /// # Errors
    /// If this state will never be reached.
    fn is_reached(&mut self) -> Result<bool, LabError> {
        Ok(true)
    }

    /// Network interfaces that only packets of this trial pass. Empty in labs that share their interfaces with other
    /// programs.
    fn vantages(&self) -> Vec<Vantage> {
        Vec::new()
    }

    /// Returns an observer that runs beside the remote processes, for the observers of these names. `None` if local
    /// observers can see the processes, or if none can. Call it when all endpoints of the trial run and wait.
    ///
    /// # Errors
    /// If the connection to the lab is lost.
    fn remote_observer(&mut self, _observers: &[&str]) -> Result<Option<Box<dyn RemoteObserver>>, LabError> {
        Ok(None)
    }

    /// The processors to which the lab confines the processes; `None`: it does not control them.
    fn confinement(&self) -> Option<&Confinement> {
        None
    }

    /// Whether the processes run in real time. False in labs that simulate time.
    fn has_clock(&self) -> bool {
        true
    }

    /// Ends the measured window of a trial of this cell, while all endpoints wait. Returns network metrics and
    /// warnings.
    ///
    /// # Errors
    /// If the network deviated from the job, so that the trial is invalid.
    fn end_window(&mut self, _cell: &str) -> Result<Aftermath, LabError> {
        Ok(Aftermath::default())
    }
}

/// Addresses of a trial.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Addresses {
    /// Bind address of each server (with a timeline, of all servers of its course); empty if no server is started.
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
    /// The program to start.
    pub endpoint: &'a Endpoint,
    /// Path of the spec file, which already exists.
    pub spec: &'a Path,
    /// Log file for standard error (bounded; a cut is marked).
    pub log: &'a Path,
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
