//! The part of a trial that Prometheus can scrape while it runs, and its labels.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use wirelab_lab::Role;
use wirelab_model::exposition::Exposition;
use wirelab_model::manifest::{EndpointRecord, Manifest};
use wirelab_model::plan::{Cell, Plan};
use wirelab_model::timeline::{ServerRecord, TimelineRecord};
use wirelab_observe::prometheus::{ABOUT, DEFAULT_PORT, Exporter, Labels};

use crate::error::RunError;

/// Folder of the sockets, below `work/`.
const FOLDER: &str = "metrics";

/// Folder of a session's sockets, given its `work/`.
pub(crate) fn sockets(work: &Path) -> PathBuf {
    work.join(FOLDER)
}

/// Whether any trial is exported, by an observer of all cells or of some.
pub(crate) fn is_wanted(observers: &[String], plan: &Plan) -> bool {
    let more = plan.cells.iter().flat_map(|cell| &cell.job.more_observers);
    observers.iter().chain(more).any(|name| name == ABOUT.name)
}

/// Port at which remote hosts export their endpoints; `None`: no export.
pub(crate) fn port(manifest: &Manifest) -> Option<u16> {
    let address = manifest.study.metrics.filter(|_| is_wanted(&manifest.observers, &manifest.plan))?;
    // A pod's port must be known in advance.
    Some(if address.port() == 0 { DEFAULT_PORT } else { address.port() })
}

/// The error for an exporting observer without an address.
pub(crate) fn without_address() -> RunError {
    let name = ABOUT.name;
    let why =
        format!("the observer `{name}` needs an address for Prometheus; add `--metrics 127.0.0.1:{DEFAULT_PORT}`");
    RunError::Refused { why }
}

/// Endpoints of a plan that do not export counters.
pub(crate) fn without_export(plan: &Plan, endpoints: &IndexMap<String, EndpointRecord>) -> Vec<String> {
    let exports = |name: &str, role| endpoints.get(name).is_some_and(|record| exports(record, role));
    let mut missing = BTreeSet::new();
    for job in plan.cells.iter().map(|cell| &cell.job) {
        if let Some(server) = job.server().filter(|server| !exports(server, Role::Server)) {
            missing.insert(format!("`{server}` as server"));
        }
        if !exports(&job.client, Role::Client) {
            missing.insert(format!("`{}` as client", job.client));
        }
    }
    missing.into_iter().collect()
}

fn exports(record: &EndpointRecord, role: Role) -> bool {
    let able = match role {
        Role::Server => &record.description.server,
        Role::Client => &record.description.client,
        // The endpoints on both sides of a sidecar count its traffic.
        Role::Sidecar(_) => return false,
        Role::ControlPlane => return false,
    };
    able.as_ref().is_some_and(|able| able.exposition)
}

/// Export of a running trial. Drop removes its pods from the exporter.
pub(crate) struct TrialExporter<'a> {
    exporter: Option<&'a Exporter>,
    /// Folder and name prefix of the sockets. Final counters of a trial stay until its cell's next trial.
    stem: PathBuf,
    labels: Labels,
}

impl<'a> TrialExporter<'a> {
    /// The export of a trial. `cell` has this index in the plan; `run` is the run's folder.
    pub(crate) fn new(
        exporter: Option<&'a Exporter>,
        (study, run): (&str, &Path),
        work: &Path,
        (number, cell): (usize, &Cell),
    ) -> Self {
        let run = run.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let labels = [("study", study.to_owned()), ("run", run), ("variant", variant(cell))];
        let labels = labels.map(|(name, value)| (name.to_owned(), value)).into();
        Self { exporter, stem: sockets(work).join(number.to_string()), labels }
    }

    /// The export settings for an endpoint's spec; `None` if the endpoint does not support them.
    pub(crate) fn of(&self, record: &EndpointRecord, role: Role, number: u32) -> Option<Exposition> {
        exports(record, role).then(|| {
            let own = [("role", role.word().to_owned()), ("pod", number.to_string())];
            let own = own.map(|(name, value)| (name.to_owned(), value));
            let mut socket = self.stem.clone().into_os_string();
            socket.push(format!("-{}{number}.sock", role.word()));
            Exposition { socket: socket.into(), labels: self.labels.iter().cloned().chain(own).collect() }
        })
    }

    /// Sets the number of reachable servers and of sending clients.
    pub(crate) fn pods(&self, servers: usize, clients: usize) {
        if let Some(exporter) = self.exporter {
            exporter.pods(&self.labels, Role::Server.word(), servers);
            exporter.pods(&self.labels, Role::Client.word(), clients);
        }
    }

    /// Sets the same numbers from the record of a timeline.
    pub(crate) fn update(&self, record: &TimelineRecord) {
        let serving = |server: &&ServerRecord| server.from_ns.is_some() && server.until_ns.is_none();
        let servers = record.servers.iter().filter(serving).count();
        self.pods(servers, record.clients.iter().filter(|client| client.window_ns == 0).count());
    }

    /// Marks the start of an action.
    pub(crate) fn action(&self, name: &str) {
        if let Some(exporter) = self.exporter {
            exporter.action(&self.labels, name);
        }
    }
}

impl Drop for TrialExporter<'_> {
    fn drop(&mut self) {
        self.pods(0, 0);
    }
}

/// Name of a cell: its level, if the study has one factor.
fn variant(cell: &Cell) -> String {
    match (cell.levels.len(), cell.levels.values().next()) {
        (1, Some(level)) if cell.twin_of.is_some() => format!("{level} (A/A)"),
        (1, Some(level)) => level.clone(),
        _ => cell.label(),
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::endpoint::{self, Description, Endpoint};

    use super::*;
    use crate::fixture::{cell, plan};

    fn record(exposition: bool) -> EndpointRecord {
        let role = endpoint::Role {
            protocols: Vec::new(),
            features: Vec::new(),
            exposition,
            own_requests: false,
            until_steady: false,
        };
        let text = |text: &str| text.to_owned();
        EndpointRecord {
            endpoint: Endpoint {
                name: text("builtin"),
                command: Vec::new(),
                environment: Default::default(),
                folder: None,
                installation: None,
            },
            description: Description {
                contract: 1,
                name: text("builtin"),
                library: text("l"),
                version: text("1"),
                language: text("x"),
                server: Some(role),
                sidecar: None,
                control_plane: None,
                client: None,
            },
            digest: text("d"),
        }
    }

    #[test]
    fn endpoints_that_export_get_a_socket_and_labels() {
        let mut cell = cell();
        cell.levels = [("variant".to_owned(), "rest".to_owned())].into();
        let of = ("balancing", Path::new("/runs/balancing-1"));
        let exporter = TrialExporter::new(None, of, Path::new("/runs/balancing-1/made"), (7, &cell));
        let exposition = exporter.of(&record(true), Role::Server, 2).unwrap();
        assert_eq!(exposition.socket.to_str(), Some("/runs/balancing-1/made/metrics/7-server2.sock"));
        let labels: Vec<_> = exposition.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(labels, ["study=balancing", "run=balancing-1", "variant=rest", "role=server", "pod=2"]);
        assert_eq!(exporter.of(&record(true), Role::Client, 0), None);
        assert_eq!(exporter.of(&record(false), Role::Server, 0), None);
    }

    #[test]
    fn endpoints_without_export_are_named() {
        let plan = plan(vec![cell()]);
        let endpoints = [("builtin".to_owned(), record(true))].into();
        assert_eq!(without_export(&plan, &endpoints), ["`builtin` as client"]);
        let mut observed = plan.clone();
        observed.cells[0].job.more_observers = vec!["prometheus".to_owned()];
        let all = |name: &str| vec![name.to_owned()];
        let found = [is_wanted(&all("cpu"), &plan), is_wanted(&all("prometheus"), &plan), is_wanted(&[], &observed)];
        assert_eq!(found, [false, true, true]);
    }
}
