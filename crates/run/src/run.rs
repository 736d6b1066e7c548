//! A run: its manifest, its journal, and access to its samples.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use indexmap::IndexMap;
use jiff::Timestamp;
use wirelab_lab::endpoints::{self, Found, describe, digest};
use wirelab_lab::{Lab, LabError, PreparedLab};
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{Description, Endpoint};
use wirelab_model::environment::Environment;
use wirelab_model::film::{Developed, Films, INDEX};
use wirelab_model::histogram::Histograms;
use wirelab_model::integrity::Integrity;
use wirelab_model::journal::{Correction, Entry, LinkCheck, StopReason, TrialRecord};
use wirelab_model::manifest::{EndpointRecord, FORMAT, Manifest};
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::page::PageLoad;
use wirelab_model::plan::{Cell, ENGINE, Job, Plan};
use wirelab_model::planted::{Calibration, PlantedRecord};
use wirelab_model::reason::Reason;
use wirelab_model::sample::Sample;
use wirelab_model::study::{Artifact, Study};
use wirelab_model::warning::Warning;
use wirelab_observe::Exporter;
use wirelab_observe::packets::ABOUT as PACKETS;
use wirelab_observe::prometheus::ABOUT as PROMETHEUS;
use wirelab_observe::sidecars::ABOUT as SIDECARS;
use wirelab_plan::{planting, polite, references};

use crate::error::RunError;
use crate::limits::Limits;
use crate::own_programs::own_programs;
use crate::store::checksum::sha256;
use crate::store::folder::{self, Folder, read_regular};
use crate::store::journal::{self, Contents, timestamp};
use crate::store::parquet;
use crate::trial::observers;
use crate::{documents, environment, exporter, film, null_server, requests};

/// Inputs of a new run.
pub struct Create<'a> {
    /// Parent of the run's folder.
    pub parent: &'a Path,
    /// Study with preset and command line applied.
    pub study: Study,
    /// Name of the applied preset.
    pub preset: Option<String>,
    /// Arguments of `--set`, as written.
    pub set: Vec<String>,
    /// Plan of the study.
    pub plan: Plan,
    /// Warnings from planning.
    pub warnings: Vec<Warning>,
    /// Discovered endpoints; those in the plan take part.
    pub endpoints: Vec<Found>,
    /// Lab of the run.
    pub lab: &'a dyn Lab,
    /// Commit of the program, if it knows it.
    pub commit: Option<&'a str>,
    /// Whether foreign hosts may get more requests than the polite limit, because the user confirmed it.
    pub may_load: bool,
}

/// A run. Reading needs no lock and writes nothing; [`Run::execute`] adds trials.
#[derive(Debug, Clone)]
pub struct Run {
    pub(crate) folder: Folder,
    pub(crate) manifest: Manifest,
    pub(crate) trials: Vec<TrialRecord>,
    /// Numbers of trials whose outcome the journal corrects.
    corrected: HashSet<u32>,
    links: Vec<LinkCheck>,
    pub(crate) planted: Vec<PlantedRecord>,
    pub(crate) references: Vec<TrialRecord>,
    pub(crate) calibration: Option<Calibration>,
    stopped: Option<StopReason>,
    torn: u64,
    /// Integrity of the journal; that of files is read when asked for.
    integrity: Integrity,
    /// Warning to add to the manifest once the run is locked.
    pub(crate) unwritten: Option<Warning>,
    pub(crate) limits: Limits,
    pub(crate) exporter: Option<Arc<Exporter>>,
    /// The lock of a new run, until [`Run::execute`] takes it.
    pub(crate) lock: Option<Arc<File>>,
}

impl Run {
    /// Creates the folder of a new run and writes its manifest. Starts no process except `describe` of each endpoint.
    ///
    /// # Errors
    /// [`RunError::Refused`], before any write, if the plan has an unknown endpoint, observer or placement; otherwise
    /// if an endpoint violates the contract, or the folder cannot be created.
    pub fn create(mut create: Create<'_>) -> Result<Self, RunError> {
        documents::check(&create.plan)?;
        requests::check(&create.plan)?;
        create.warnings.extend(documents::archives::complete(&mut create.plan)?);
        if let Some(why) = polite::excess(&create.plan).filter(|_| !create.may_load) {
            return Err(RunError::Impolite { why });
        }
        let mut endpoints = records(&create.plan, &create.endpoints, create.lab)?;
        let null_server = null_server(&create)?;
        let unavailable = |job: &Job| null_server::unavailable(null_server.as_ref(), create.lab, job);
        let references = references(&create.plan, create.study.references, unavailable);
        if let Some(record) = null_server.filter(|_| !references.repeated().is_empty()) {
            endpoints.entry(ENGINE.to_owned()).or_insert(record);
        }
        // Without a start of endpoints, their descriptions are unavailable.
        if create.lab.info().starts_endpoints {
            sidecars(&create.plan, &endpoints)?;
            control_planes(&create.plan, &endpoints)?;
        }
        let mut observers = match &create.study.observers {
            Some(names) => names.clone(),
            None => wirelab_observe::default_set().into_iter().map(str::to_owned).collect(),
        };
        if create.study.keep.contains(&Artifact::Pcap) && !observers.iter().any(|name| name == PACKETS.name) {
            observers.push(PACKETS.name.to_owned());
        }
        let mut exposes = exporter::is_wanted(&observers, &create.plan);
        if create.study.metrics.is_some() && !exposes {
            observers.push(PROMETHEUS.name.to_owned());
            exposes = true;
        }
        if exposes && create.study.metrics.is_none() {
            return Err(exporter::without_address());
        }
        // Without this observer, the CPU time and memory of sidecars would be missing from every account.
        let has_sidecars = create.plan.cells.iter().any(|cell| cell.job.has_mesh());
        if has_sidecars && !observers.iter().any(|name| name == SIDECARS.name) {
            observers.push(SIDECARS.name.to_owned());
        }
        self::observers(&observers)?;
        create.plan.cells.iter().try_for_each(|cell| self::observers(&cell.job.more_observers).map(drop))?;
        film::only_pages_are_filmed(&create.plan, &observers)?;
        check(&create.plan, create.lab)?;
        let environment = Environment { commit: create.commit.map(str::to_owned), ..environment::read() };
        let mut warnings = create.warnings;
        warnings.extend(create.lab.warnings());
        warnings.extend(environment::warnings(&environment));
        if exposes {
            warnings.push(Warning::Exposing { without: exporter::without_export(&create.plan, &endpoints) });
        }
        let disturbing = create.study.keep.iter().filter(|artifact| artifact.disturbs());
        warnings.extend(disturbing.map(|artifact| Warning::Keeping { what: artifact.to_string() }));
        let created = timestamp();
        let stamp = Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
        let folder = Folder::create(create.parent, &create.study.name, &stamp)?;
        // Locked before it is a run: from its first moment on, a new run is in progress.
        let lock = folder.lock()?;
        let planted = Some(planting(&create.plan, create.study.planted));
        let manifest = Manifest {
            format: FORMAT,
            created,
            preset: create.preset,
            set: create.set,
            lab: create.lab.info().name.to_owned(),
            may_load: create.may_load,
            observers,
            study: create.study,
            plan: create.plan,
            planted,
            references: Some(references),
            endpoints,
            environment,
            warnings,
        };
        folder.write_manifest(&manifest)?;
        Ok(Self { lock: Some(Arc::new(lock)), ..Self::new(folder, manifest) })
    }

    /// Reads a finished or unfinished run, for reports.
    ///
    /// # Errors
    /// If the folder is not a run, or is damaged.
    pub fn open(folder: &Path) -> Result<Self, RunError> {
        let folder = Folder::at(folder);
        let mut run = Self::new(folder.clone(), folder.read_manifest()?);
        run.replace(match folder.is_archive() {
            true => journal::read_packed(&folder.packed_journal())?,
            false => journal::read(&folder.journal())?,
        });
        Ok(run)
    }

    /// Reads a run to continue it. Machine and endpoints must be unchanged.
    ///
    /// # Errors
    /// [`RunError::Changed`] if they changed, unless `force` is set, which adds a warning to the run; otherwise as
    /// for [`Run::open`].
    pub fn reopen(folder: &Path, force: bool) -> Result<Self, RunError> {
        let mut run = Self::open(folder)?;
        if run.is_archive() {
            let why = "the folder is the archive of a run, which cannot be continued; `wirelab report` shows it";
            return Err(RunError::Refused { why: why.to_owned() });
        }
        let changed = run.changes();
        if !changed.is_empty() {
            if !force {
                return Err(RunError::Changed { what: changed });
            }
            run.unwritten = Some(Warning::ConditionsChanged { what: changed });
        }
        Ok(run)
    }

    fn new(folder: Folder, manifest: Manifest) -> Self {
        Self {
            folder,
            manifest,
            trials: Vec::new(),
            corrected: HashSet::new(),
            links: Vec::new(),
            planted: Vec::new(),
            references: Vec::new(),
            calibration: None,
            stopped: None,
            torn: 0,
            integrity: Integrity::default(),
            unwritten: None,
            limits: Limits::default(),
            exporter: None,
            lock: None,
        }
    }

    /// Path of the run folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Whether it is read from an archive, which has no samples.
    #[must_use]
    pub fn is_archive(&self) -> bool {
        self.folder.is_archive()
    }

    /// The manifest: everything known before the first trial.
    #[must_use]
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Trials, in journal order.
    #[must_use]
    pub fn trials(&self) -> &[TrialRecord] {
        &self.trials
    }

    /// Measurements of the lab's links, in journal order.
    #[must_use]
    pub fn links(&self) -> &[LinkCheck] {
        &self.links
    }

    /// Trials with planted effects, in journal order.
    #[must_use]
    pub fn planted(&self) -> &[PlantedRecord] {
        &self.planted
    }

    /// Trials against the null server, in journal order.
    #[must_use]
    pub fn references(&self) -> &[TrialRecord] {
        &self.references
    }

    /// Why no further block started; `None` while a process works on the run, or if it was killed.
    #[must_use]
    pub const fn stopped(&self) -> Option<StopReason> {
        self.stopped
    }

    /// Whether a process works on the run now.
    ///
    /// # Errors
    /// If the lock cannot be read.
    pub fn is_in_progress(&self) -> Result<bool, RunError> {
        self.folder.is_locked()
    }

    /// Bytes of a journal line that a kill cut off. Its trial is lost, and repeated on resuming.
    #[must_use]
    pub const fn torn(&self) -> u64 {
        self.torn
    }

    /// Sets the time limits of endpoints outside the measured schedule.
    pub const fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
    }

    /// Sets the exporter that shows trials to Prometheus until [`Run::execute`] ends, if the study wants that.
    pub fn set_exporter(&mut self, exporter: Exporter) {
        self.exporter = Some(Arc::new(exporter));
    }

    /// Checks the checksums of journal and samples files. Reads every samples file; an archive has none.
    #[must_use]
    pub fn integrity(&self) -> Integrity {
        let mut integrity = self.integrity.clone();
        if self.is_archive() {
            return integrity;
        }
        let is_damaged = |record: &&TrialRecord| match record.results_sha256 {
            Some(_) => self.results(record, "").is_err(),
            None => self.samples(record).is_err() || self.histograms(record).is_err() || self.loads(record).is_err(),
        };
        let damaged = self.trials.iter().filter(is_damaged);
        integrity.damaged_files = damaged.filter_map(|record| record.results.clone()).collect();
        integrity
    }

    /// Path and content of a trial's results file with this suffix; `None` if it has none.
    fn results(&self, record: &TrialRecord, suffix: &str) -> Result<Option<(PathBuf, Vec<u8>)>, RunError> {
        let Some(path) = record.results.as_deref().filter(|path| path.ends_with(suffix)) else { return Ok(None) };
        let path = self.folder.path().join(path);
        let content = read_regular(&path).map_err(RunError::io("cannot read the results", &path))?;
        match &record.results_sha256 {
            Some(expected) if *expected != sha256(&content) => {
                Err(RunError::Damaged { path, why: "its SHA-256 is not the one in the journal".to_owned() })
            }
            _ => Ok(Some((path, content))),
        }
    }

    /// The samples of a trial; empty if it failed or recorded no samples.
    ///
    /// # Errors
    /// If the samples cannot be read, or were changed.
    pub fn samples(&self, record: &TrialRecord) -> Result<Vec<Sample>, RunError> {
        match self.results(record, ".parquet")? {
            Some((path, content)) => parquet::samples(&path, content),
            None => Ok(Vec::new()),
        }
    }

    /// The histograms of a trial; `None` if it failed or recorded samples.
    ///
    /// # Errors
    /// If the histograms cannot be read, or were changed.
    pub fn histograms(&self, record: &TrialRecord) -> Result<Option<Histograms>, RunError> {
        let Some((path, content)) = self.results(record, ".json")? else { return Ok(None) };
        let histograms = serde_json::from_slice(&content);
        histograms.map(Some).map_err(|error| RunError::Damaged { path, why: error.to_string() })
    }

    /// The page loads of a trial; empty if it failed or loaded no pages.
    ///
    /// # Errors
    /// If the loads cannot be read, or were changed.
    pub fn loads(&self, record: &TrialRecord) -> Result<Vec<PageLoad>, RunError> {
        let Some((path, content)) = self.results(record, ".jsonl")? else { return Ok(Vec::new()) };
        let loads = serde_json::Deserializer::from_slice(&content).into_iter().collect::<Result<_, _>>();
        loads.map_err(|error: serde_json::Error| RunError::Damaged { path, why: error.to_string() })
    }

    /// The film of a typical load of a trial, with its pictures (JPEG) in order; `None` if it was not filmed.
    ///
    /// # Errors
    /// If the film cannot be read.
    pub fn film(&self, record: &TrialRecord) -> Result<Option<Developed>, RunError> {
        let folder = self.folder.films().join(folder::stem(&record.trial));
        let path = folder.join(INDEX);
        if !path.exists() {
            return Ok(None);
        }
        let text = fs::read_to_string(&path).map_err(RunError::io("cannot read the film", &path))?;
        let films: Films =
            serde_json::from_str(&text).map_err(|error| RunError::Damaged { path, why: error.to_string() })?;
        let picture = |file: &str| {
            // Read only files beside the index, whatever path it contains.
            let path = folder.join(Path::new(file).file_name().unwrap_or_default());
            fs::read(&path).map_err(RunError::io("cannot read the picture", &path))
        };
        let Some(film) = films.typical else { return Ok(None) };
        let pictures = film.pictures.iter().map(|shown| picture(&shown.file)).collect::<Result<_, _>>()?;
        Ok(Some((film, pictures)))
    }

    /// The endpoint of that name in the run.
    pub(crate) fn endpoint(&self, name: &str) -> Result<&EndpointRecord, RunError> {
        self.manifest.endpoints.get(name).ok_or_else(|| RunError::Refused {
            why: format!("the plan names the endpoint `{name}`, which is not part of the run"),
        })
    }

    /// Replaces the content read from the journal.
    pub(crate) fn replace(&mut self, contents: Contents) {
        self.trials.clear();
        self.corrected.clear();
        self.links.clear();
        self.planted.clear();
        self.references.clear();
        self.calibration = None;
        self.stopped = None;
        self.torn = contents.torn;
        self.integrity = contents.integrity;
        for entry in contents.entries {
            self.add(entry);
        }
    }

    /// Adds an entry that was appended to the journal.
    pub(crate) fn add(&mut self, entry: Entry) {
        match entry {
            Entry::Trial(record) => {
                self.trials.push(record);
                let last = self.trials.len() - 1;
                for check in 0..self.links.len() {
                    self.invalidate(check, last);
                }
            }
            Entry::Planted(record) => self.planted.push(record),
            Entry::Reference(record) => self.references.push(record),
            Entry::Calibrated(calibration) => self.calibration = Some(calibration),
            Entry::Links(check) => {
                self.links.push(check);
                let last = self.links.len() - 1;
                for trial in 0..self.trials.len() {
                    self.invalidate(last, trial);
                }
            }
            Entry::Corrected(Correction { number, outcome, .. }) => {
                if let Some(record) = self.trials.iter_mut().find(|record| record.trial.number == number) {
                    record.outcome = outcome;
                }
                self.corrected.insert(number);
            }
            Entry::Started { .. } => self.stopped = None,
            Entry::Stopped { reason, .. } => self.stopped = Some(reason),
        }
    }

    /// Corrections that the journal lacks: of trials that a link check has invalidated since. Journals of older
    /// versions have none.
    pub(crate) fn missing_corrections(&self, at: &str) -> Vec<Entry> {
        let is_missing = |record: &&TrialRecord| {
            matches!(record.outcome.reason(), Some(Reason::LinkDeviated { .. }))
                && !self.corrected.contains(&record.trial.number)
        };
        let correction = |record: &TrialRecord| {
            let (number, outcome) = (record.trial.number, record.outcome.clone());
            Entry::Corrected(Correction { number, outcome, at: at.to_owned() })
        };
        self.trials.iter().filter(is_missing).map(correction).collect()
    }

    /// Invalidates a trial whose link misbehaved before or after its block; the lab is to blame.
    fn invalidate(&mut self, check: usize, trial: usize) {
        let (check, record) = (&self.links[check], &mut self.trials[trial]);
        let link = self.manifest.plan.cells.get(record.trial.cell).and_then(|cell| cell.job.topology.link.as_ref());
        if let Some(why) = link.and_then(|link| check.spoils(record.trial.block, link))
            && record.outcome == Outcome::Ok
        {
            record.outcome = Outcome::failed(Blame::Lab, Reason::LinkDeviated { miss: why.to_owned() });
        }
    }

    /// Changes of machine and endpoints since the run was created.
    fn changes(&self) -> Vec<String> {
        let mut changes = environment::differences(&self.manifest.environment, &environment::read());
        for (name, record) in self.manifest.endpoints.iter().filter(|(_, record)| record.digest != NOT_STARTED) {
            match digest(&record.endpoint) {
                Ok(digest) if digest == record.digest => {}
                Ok(_) => changes.push(format!("the program of the endpoint `{name}` has changed")),
                Err(error) => changes.push(error.to_string()),
            }
        }
        changes
    }
}

/// Rejects a plan with cells that the lab does not support.
fn check(plan: &Plan, lab: &dyn Lab) -> Result<(), RunError> {
    plan.cells.iter().try_for_each(|cell| lab.check(&cell.job).map_err(|error| unsupported(cell, &error)))
}

/// Rejects sidecars whose endpoint lacks that role.
fn sidecars(plan: &Plan, endpoints: &IndexMap<String, EndpointRecord>) -> Result<(), RunError> {
    let mut named = plan.cells.iter().filter_map(|cell| cell.job.sidecar());
    let is_none = |name: &&String| endpoints.get(*name).is_none_or(|record| record.description.sidecar.is_none());
    match named.find(is_none) {
        None => Ok(()),
        Some(name) => Err(RunError::Refused {
            why: format!(
                "`mesh` is `{name}`, an endpoint without the role sidecar; `wirelab endpoints` lists the roles"
            ),
        }),
    }
}

/// Rejects control planes whose endpoint lacks that role.
fn control_planes(plan: &Plan, endpoints: &IndexMap<String, EndpointRecord>) -> Result<(), RunError> {
    let mut named = plan.cells.iter().filter_map(|cell| cell.job.control_plane());
    let is_none = |name: &&String| endpoints.get(*name).is_none_or(|record| record.description.control_plane.is_none());
    match named.find(is_none) {
        None => Ok(()),
        Some(name) => Err(RunError::Refused {
            why: format!(
                "`control_plane` is `{name}`, an endpoint without that role; `wirelab endpoints` lists the roles"
            ),
        }),
    }
}

fn unsupported(cell: &Cell, why: &LabError) -> RunError {
    RunError::Refused { why: format!("the lab cannot run the cell `{}`: {why}", cell.label()) }
}

/// All server addresses of a plan's cells in a lab.
pub(crate) fn addresses(plan: &Plan, lab: &dyn PreparedLab) -> Result<BTreeSet<IpAddr>, RunError> {
    let mut addresses = BTreeSet::new();
    for cell in &plan.cells {
        let found = lab.addresses(&cell.job).map_err(|error| unsupported(cell, &error))?;
        addresses.extend(found.servers);
        addresses.insert(found.connect);
    }
    Ok(addresses)
}

/// The endpoints of a plan with their descriptions.
fn records(plan: &Plan, found: &[Found], lab: &dyn Lab) -> Result<IndexMap<String, EndpointRecord>, RunError> {
    let mut records = IndexMap::new();
    let found: Vec<Found> = found.iter().cloned().chain(own_programs(plan, found)?).collect();
    let servers = plan.cells.iter().filter_map(|cell| cell.job.server());
    let sidecars = plan.cells.iter().filter_map(|cell| cell.job.sidecar());
    let control_planes = plan.cells.iter().filter_map(|cell| cell.job.control_plane());
    let clients = plan.cells.iter().map(|cell| &cell.job.client);
    for name in servers.chain(clients).chain(sidecars).chain(control_planes) {
        if !records.contains_key(name) {
            records.insert(name.clone(), record(name, &found, lab)?);
        }
    }
    Ok(records)
}

fn record(name: &str, found: &[Found], lab: &dyn Lab) -> Result<EndpointRecord, RunError> {
    let found = found
        .iter()
        .find(|one| one.name == name)
        .ok_or_else(|| RunError::Refused { why: endpoints::unknown(name, found) })?;
    let broken = |cause: LabError| RunError::endpoint(format!("the endpoint `{name}`"), cause);
    let endpoint = found.endpoint.clone().map_err(broken)?;
    if !lab.info().starts_endpoints {
        return Ok(not_started(endpoint));
    }
    let description = describe(&endpoint).map_err(broken)?;
    let digest = digest(&endpoint).map_err(broken)?;
    Ok(EndpointRecord { endpoint, description, digest })
}

/// The null server, if null references are wanted and this wirelab has it.
fn null_server(create: &Create<'_>) -> Result<Option<EndpointRecord>, RunError> {
    let is_wanted = create.study.references.0 > 0.0 && create.endpoints.iter().any(|found| found.name == ENGINE);
    is_wanted.then(|| record(ENGINE, &create.endpoints, create.lab)).transpose()
}

/// Library and digest of an endpoint in a lab that starts none.
const NOT_STARTED: &str = "none: the fake lab starts no endpoint";

/// Record of an endpoint in a lab that starts none.
fn not_started(endpoint: Endpoint) -> EndpointRecord {
    let description = Description {
        contract: CONTRACT_VERSION,
        name: endpoint.name.clone(),
        library: NOT_STARTED.to_owned(),
        version: "none".to_owned(),
        language: "none".to_owned(),
        server: None,
        client: None,
        sidecar: None,
        control_plane: None,
    };
    EndpointRecord { endpoint, description, digest: NOT_STARTED.to_owned() }
}
