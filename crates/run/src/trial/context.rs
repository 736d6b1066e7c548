//! The state that all steps of a trial share: its context, its inputs, and the facts so far.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use indexmap::IndexMap;
use wirelab_lab::{Addresses, Aftermath, RemoteObserver};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Configured, WarmedUp};
use wirelab_model::journal::{Lives, Portion};
use wirelab_model::manifest::EndpointRecord;
use wirelab_model::metric::Values;
use wirelab_model::plan::{Cell, Job, Plan, Trial};
use wirelab_model::processors::InForce;
use wirelab_model::study::Artifact;
use wirelab_model::timeline::{Lifetimes, TimelineRecord};
use wirelab_model::transport::TransportReport;
use wirelab_model::warning::Warning;
use wirelab_observe::{Exporter, Witness};

use crate::error::RunError;
use crate::exporter::TrialExporter;
use crate::limits::Limits;
use crate::spec::Files;
use crate::store::folder::Folder;
use crate::trial::carried::Carried;
use crate::trial::preparation::Preparation;
use crate::trial::results::Kept;

/// Context shared by the trials of a session.
pub(crate) struct TrialContext<'a> {
    pub plan: &'a Plan,
    pub endpoints: &'a IndexMap<String, EndpointRecord>,
    pub observers: &'a [String],
    pub folder: &'a Folder,
    pub files: &'a Files,
    pub limits: Limits,
    /// Artifacts to keep beside the results.
    pub keep: &'a [Artifact],
    pub stop: &'a AtomicBool,
    pub witness: &'a Witness,
    /// Minimum interval between two requests to a foreign host.
    pub interval: Duration,
    /// The study's name.
    pub study: &'a str,
    /// Export to Prometheus.
    pub exporter: Option<&'a Exporter>,
}

/// Inputs of every step of a trial.
pub(crate) struct TrialInputs<'a> {
    pub trial: &'a Trial,
    pub cell: &'a Cell,
    pub job: &'a Job,
    pub lifetimes: Lifetimes,
    pub addresses: Addresses,
    /// Addresses of the server sidecars, if any.
    pub sidecar_addresses: Vec<IpAddr>,
    /// Address of the control plane, if any.
    pub control_plane_address: Option<IpAddr>,
    /// Export to Prometheus, if any.
    pub exporter: Option<TrialExporter<'a>>,
    /// Folder for films of its loads, if it is filmed.
    pub films: Option<PathBuf>,
}

/// Facts about a trial so far; failed trials keep them for diagnosis.
#[derive(Default)]
pub(crate) struct Facts {
    pub server: Configured,
    pub client: Configured,
    pub preparation: Preparation,
    pub window_ns: u64,
    /// Transport reports of the endpoints.
    pub server_transport: Option<Box<TransportReport>>,
    pub client_transport: Option<Box<TransportReport>>,
    pub values: Values,
    pub results: Option<Kept>,
    /// Record of the window, if the trial has a timeline.
    pub timeline: Option<TimelineRecord>,
    /// Record of each client, if several shared the workload.
    pub portions: Vec<Portion>,
    /// Median response time by fifth of the window.
    pub profile: Vec<u64>,
    /// Response times by the age of connections.
    pub lives: Option<Lives>,
    /// The end of a warm-up that lasts until response times are steady.
    pub warmed_up: Option<WarmedUp>,
    /// Processors that the processes could use.
    pub processors: Option<InForce>,
    /// Port that the clients connect to.
    pub connect_port: Option<u16>,
    /// Requests that the servers answered since `ready`, if all of them count.
    pub answered: Option<u64>,
    /// Requests carried by the sidecars, if any.
    pub carried: Option<Carried>,
    pub network: Aftermath,
    /// Observer beside remote processes.
    pub remote_observer: Option<Box<dyn RemoteObserver>>,
    pub warnings: Vec<Warning>,
    /// Whether the processes run in real time.
    pub has_clock: bool,
}

impl TrialContext<'_> {
    pub(crate) fn endpoint(&self, name: &str) -> Result<Endpoint, RunError> {
        let record = self.endpoints.get(name).ok_or_else(|| RunError::Refused {
            why: format!("the plan names the endpoint `{name}`, which is not part of the run"),
        })?;
        Ok(record.endpoint.clone())
    }

    pub(crate) fn keeps(&self, artifact: Artifact) -> bool {
        self.keep.contains(&artifact)
    }

    /// Folder for an endpoint's qlog files; `None` if the study does not keep them, or the protocol has none.
    pub(crate) fn qlog_dir(&self, trial: &Trial, job: &Job, of: &str) -> Result<Option<PathBuf>, RunError> {
        if !self.keeps(Artifact::Qlog) || !job.protocol.uses_quic() {
            return Ok(None);
        }
        self.folder.make_qlog(trial, of).map(Some)
    }
}
