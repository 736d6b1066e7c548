//! Executes a run block by block, and journals each trial before the next begins, until a stop criterion holds.

mod each;
mod given_up;
mod planted;
pub(crate) mod reference;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tracing::{debug, error, info, info_span, warn};
use wirelab_lab::{Beside, Guard, Lab, LabError, Preparation, PreparedLab, Role, guard, refuses_unknown_protocol};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::journal::{Entry, LinkCheck, StopReason, TrialRecord};
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::plan::{Cell, Plan, Trial};
use wirelab_model::study::Artifact;
use wirelab_observe::{Witness, witness};
use wirelab_plan::{PlantedTrial, ReferenceTrial, polite};

pub use crate::blocks::each::{Blocks, each_block};
use crate::documents::Documents;
use crate::error::RunError;
use crate::exporter;
use crate::pki::Pki;
use crate::progress::{Phase, Progress};
use crate::run::{Run, addresses};
use crate::spec::Files;
use crate::store::journal::{self, Writer, timestamp};
use crate::trial::{TrialAbort, TrialContext, observers, server_log};

/// Time limit for the last scrape by Prometheus, which by default scrapes once a minute.
const LAST_SCRAPE: Duration = Duration::from_secs(65);

impl Run {
    /// Executes the run until the study is complete, its budget is spent, or `stop` is raised. Calls `progress`
    /// before and after each trial. Journalled trials are not repeated, and an unfinished block continues in its
    /// order.
    ///
    /// A trial interrupted by `stop` leaves no record. The calling thread must outlive the processes that this call
    /// starts; every thread that waits for the return does.
    ///
    /// # Errors
    /// If another process works on the run, an endpoint violates the contract, or the disk fails. The run can be
    /// resumed in each case.
    pub fn execute(
        &mut self,
        lab: &mut dyn Lab,
        progress: &mut dyn FnMut(&Progress),
        stop: &AtomicBool,
    ) -> Result<StopReason, RunError> {
        let _lock = match self.lock.take() {
            Some(lock) => lock,
            None => self.folder.lock()?.into(),
        };
        let _span = info_span!("run", study = self.manifest.study.name).entered();
        if lab.info().name != self.manifest.lab {
            let why = format!("the run was made for the lab `{}`, not for `{}`", self.manifest.lab, lab.info().name);
            return Err(RunError::Refused { why });
        }
        let mut writer = self.recover()?;
        if let Some(reason) = self.enough() {
            // The run may have been killed or interrupted between its last trial and this entry.
            if self.stopped() != Some(reason) {
                let entry = Entry::Stopped { reason, at: timestamp() };
                writer.append(&entry)?;
                self.add(entry);
            }
            self.folder.remove_work()?;
            return Ok(reason);
        }
        // Check the names before any process starts.
        observers(&self.manifest.observers)?;
        let mut session = Session {
            run: self,
            writer,
            progress,
            stop,
            begun: Instant::now(),
            last: None,
            witness: Witness::default(),
        };
        session.append(Entry::Started { at: timestamp() })?;
        info!(lab = lab.info().name, version = env!("CARGO_PKG_VERSION"), "run started");
        let result = session.work(lab);
        match &result {
            Ok(reason) => info!(?reason, "run stopped"),
            Err(error) => error!(%error, "run failed"),
        }
        let stopped = match &result {
            Ok(reason) => session.append(Entry::Stopped { reason: *reason, at: timestamp() }),
            Err(_) => Ok(()),
        };
        let cleaned = self.folder.remove_work();
        let reason = result?;
        stopped.and(cleaned).map(|()| reason)
    }

    /// Restores a consistent folder under the lock: reads entries of other processes, cuts off an incomplete line,
    /// and removes files without a journalled trial.
    fn recover(&mut self) -> Result<Writer, RunError> {
        let path = self.folder.journal();
        let contents = journal::read(&path)?;
        let mut writer = Writer::open(&path, &contents)?;
        self.replace(contents);
        append_corrections(self, &mut writer)?;
        let recorded: HashSet<u32> = self.all_records().map(|record| record.trial.number).collect();
        self.folder.remove_orphans(|number| recorded.contains(&number))?;
        if let Some(warning) = self.unwritten.take() {
            self.manifest.warnings.push(warning);
            self.folder.write_manifest(&self.manifest)?;
        }
        Ok(writer)
    }

    /// Time of all trials so far, in nanoseconds.
    fn spent_ns(&self) -> u64 {
        self.all_records().map(|record| record.took_ns).fold(0, u64::saturating_add)
    }

    /// The records of all trials, of the plan and beside it.
    fn all_records(&self) -> impl Iterator<Item = &TrialRecord> {
        let planted = self.planted.iter().map(|planted| &planted.record);
        self.trials.iter().chain(planted).chain(&self.references)
    }

    /// Number of blocks, from the first without a gap, whose trials are all journalled.
    fn complete_blocks(&self) -> u32 {
        let recorded: HashSet<u32> = self.trials.iter().map(|record| record.trial.number).collect();
        let complete = |number: &u32| block(self, *number).iter().all(|trial| recorded.contains(&trial.number));
        (0..self.manifest.plan.max_blocks).take_while(complete).count() as u32
    }

    /// Why no further block starts; `None` if one does. Evaluated between blocks only: a look at interval widths
    /// within a block would weight its cells unequally.
    fn enough(&self) -> Option<StopReason> {
        let plan = &self.manifest.plan;
        let complete = self.complete_blocks();
        if complete >= plan.max_blocks {
            return Some(StopReason::MaxBlocks);
        }
        let at_boundary = self.trials.len() as u64 == u64::from(complete) * plan.cells.len() as u64;
        if !at_boundary || complete < plan.min_blocks {
            return None;
        }
        let spent = self.spent_ns();
        if plan.budget.is_some_and(|budget| spent >= budget.nanos()) {
            return Some(StopReason::Budget);
        }
        wirelab_stats::enough(&self.manifest.study, plan, &self.trials)
    }
}

/// The trials of a run in a prepared lab.
struct Trials<'s, 'a> {
    session: &'s mut Session<'a>,
    lab: &'s mut dyn PreparedLab,
    files: &'s Files,
    /// Trials beside the plan of the current block that are still due, in the order of their positions.
    due: VecDeque<Extra>,
}

/// A trial beside the plan.
enum Extra {
    Planted(PlantedTrial),
    Reference(ReferenceTrial),
}

impl Extra {
    /// Position of the trial of the plan that it precedes.
    const fn before(&self) -> u32 {
        match self {
            Self::Planted(planted) => planted.before,
            Self::Reference(reference) => reference.before,
        }
    }
}

impl Trials<'_, '_> {
    /// Executes the trials beside the plan that are due before a position of the block. `false`: one was interrupted.
    fn beside_before(&mut self, position: u32) -> Result<bool, RunError> {
        while let Some(extra) = self.due.pop_front_if(|extra| extra.before() <= position) {
            let is_done = match extra {
                Extra::Planted(planted) => self.session.plant(self.lab, self.files, &planted)?,
                Extra::Reference(reference) => self.session.refer(self.lab, self.files, &reference)?,
            };
            if !is_done {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn record(&mut self, record: TrialRecord) -> Result<(), RunError> {
        self.session.last = Some(record.outcome.clone());
        self.session.append(Entry::Trial(record))
    }
}

impl Blocks for Trials<'_, '_> {
    type Error = RunError;

    fn begin(&mut self, number: u32) -> Result<Vec<Trial>, RunError> {
        self.session.measure_links(self.lab, number)?;
        let run = &*self.session.run;
        let references = run.due_references(number).into_iter().map(Extra::Reference);
        let mut due: Vec<_> = run.due(number).into_iter().map(Extra::Planted).chain(references).collect();
        due.sort_by_key(Extra::before);
        self.due = due.into();
        let recorded: HashSet<u32> = run.trials.iter().map(|record| record.trial.number).collect();
        Ok(block(run, number).into_iter().filter(|trial| !recorded.contains(&trial.number)).collect())
    }

    fn label(&self, cell: usize) -> String {
        self.session.run.manifest.plan.cells.get(cell).map(Cell::label).unwrap_or_default()
    }

    fn outcomes(&self, cell: usize) -> Vec<&Outcome> {
        let records = self.session.run.trials.iter().rev().filter(|record| record.trial.cell == cell);
        records.map(|record| &record.outcome).collect()
    }

    fn show(&mut self, trial: &Trial) {
        self.session.report(Phase::Measuring, Some(trial));
    }

    fn perform(&mut self, trial: &Trial) -> Result<bool, RunError> {
        self.lab.check_helpers().map_err(lost)?;
        if !self.beside_before(trial.position)? {
            return Ok(false);
        }
        let plan = &self.session.run.manifest.plan;
        let Some(record) = self.session.trial(self.lab, self.files, plan, trial)? else { return Ok(false) };
        // A lab that lost a helper during the trial is the cause; a resumed run repeats the trial.
        if record.outcome != Outcome::Ok {
            self.lab.check_helpers().map_err(lost)?;
        }
        log_end(&record);
        self.record(record).map(|()| true)
    }

    fn give_up(&mut self, trial: &Trial, outcome: Outcome) -> Result<(), RunError> {
        self.record(TrialRecord::without_window(*trial, timestamp(), outcome))
    }

    fn end(&mut self, number: u32) -> Result<Option<StopReason>, RunError> {
        if self.session.is_hopeless() {
            return Ok(Some(StopReason::Hopeless));
        }
        if !self.beside_before(u32::MAX)? {
            return Ok(Some(StopReason::Interrupted));
        }
        let reason = self.session.run.enough();
        if reason.is_some() {
            self.session.measure_links(self.lab, number + 1)?;
        }
        Ok(reason)
    }
}

/// Logs how a trial ended.
fn log_end(record: &TrialRecord) {
    let took = format_args!("{:.3} s", record.took_ns as f64 / 1e9);
    match &record.outcome {
        Outcome::Ok => info!(%took, "trial succeeded"),
        Outcome::Failed { blame, reason } => warn!(%took, %blame, %reason, "trial failed"),
        Outcome::Unsupported { reason } => warn!(%took, %reason, "trial unsupported"),
    }
}

/// Appends an entry, and corrections of earlier records that follow from it.
fn append(run: &mut Run, writer: &mut Writer, entry: Entry) -> Result<(), RunError> {
    let changes_outcomes = matches!(entry, Entry::Trial(_) | Entry::Links(_));
    writer.append(&entry)?;
    run.add(entry);
    if changes_outcomes { append_corrections(run, writer) } else { Ok(()) }
}

fn append_corrections(run: &mut Run, writer: &mut Writer) -> Result<(), RunError> {
    for correction in run.missing_corrections(&timestamp()) {
        writer.append(&correction)?;
        run.add(correction);
    }
    Ok(())
}

fn block(run: &Run, number: u32) -> Vec<Trial> {
    wirelab_plan::block(&run.manifest.plan, number)
}

fn refused(error: LabError) -> RunError {
    RunError::Refused { why: error.to_string() }
}

const fn lost(cause: LabError) -> RunError {
    RunError::LabLost { cause }
}

/// One process's work on a run.
struct Session<'a> {
    run: &'a mut Run,
    writer: Writer,
    progress: &'a mut dyn FnMut(&Progress),
    stop: &'a AtomicBool,
    begun: Instant,
    last: Option<Outcome>,
    witness: Witness,
}

impl Session<'_> {
    fn append(&mut self, entry: Entry) -> Result<(), RunError> {
        append(self.run, &mut self.writer, entry)
    }

    fn work(&mut self, lab: &mut dyn Lab) -> Result<StopReason, RunError> {
        self.report(Phase::Preparing, None);
        let starts_endpoints = lab.info().starts_endpoints;
        let (mut lab, files) = match self.prepare(lab) {
            // An error caused by the interruption is not a failure.
            Err(_) if self.stop.load(Ordering::Relaxed) => return Ok(StopReason::Interrupted),
            prepared => prepared?,
        };
        info!("lab prepared");
        if starts_endpoints {
            self.report(Phase::Probing, None);
            self.probe()?;
            // Later, the programs have started, and the logs of trials are kept under the same names.
            if self.run.trials.is_empty() && !self.rehearse(lab.as_mut(), &files)? {
                return Ok(StopReason::Interrupted);
            }
        }
        let result = self.measure(lab.as_mut(), &files);
        // The lab may export the counters, so it must still exist.
        self.wait_for_last_scrape();
        result
    }

    /// Executes blocks until a stop criterion holds.
    fn measure(&mut self, lab: &mut dyn PreparedLab, files: &Files) -> Result<StopReason, RunError> {
        let blocks = self.run.complete_blocks()..self.run.manifest.plan.max_blocks;
        let (give_up_after, stop) = (self.run.manifest.study.blocks.give_up_after, self.stop);
        each_block(&mut Trials { session: self, lab, files, due: VecDeque::new() }, blocks, give_up_after, stop)
    }

    /// Measures the lab's links and paths between two blocks.
    fn measure_links(&mut self, lab: &mut dyn PreparedLab, block: u32) -> Result<(), RunError> {
        let has_link = |cell: &Cell| cell.job.topology.link.is_some();
        if !lab.has_paths() && !self.run.manifest.plan.cells.iter().any(has_link) {
            return Ok(());
        }
        self.report(Phase::Links, None);
        let manifest = &self.run.manifest;
        let plan = &manifest.plan;
        let linked: Vec<_> = plan.cells.iter().filter(|cell| has_link(cell)).map(|cell| &cell.job).collect();
        let measured = lab.measure_links(&linked, plan.seed.wrapping_add(u64::from(block)));
        let links = measured.map_err(lost)?;
        let jobs: Vec<_> = plan.cells.iter().map(|cell| &cell.job).collect();
        let paths = lab.measure_paths(&jobs, manifest.study.link_load);
        if links.is_empty() && paths.is_empty() {
            return Ok(());
        }
        info!(links = links.len(), paths = paths.len(), "links measured");
        self.append(Entry::Links(LinkCheck { block, at: timestamp(), links, paths }))
    }

    /// Sets up lab, certificates and documents; secrets never outlive a session.
    fn prepare<'l>(&self, lab: &'l mut dyn Lab) -> Result<(Box<dyn PreparedLab + 'l>, Files), RunError> {
        let plan = &self.run.manifest.plan;
        let work = self.run.folder.make_work()?;
        let jobs: Vec<_> = plan.cells.iter().map(|cell| &cell.job).collect();
        let sockets = exporter::sockets(&work);
        std::fs::create_dir(&sockets).map_err(RunError::io("cannot make the folder", &sockets))?;
        let metrics = exporter::port(&self.run.manifest).map(|port| (&*sockets, port));
        let folder = work.parent().unwrap_or(&work);
        let preparation = Preparation { jobs: &jobs, folder, stop: self.stop, metrics };
        if let Some(guard) = Guard::shared() {
            guard.log_at(&preparation.log_of(guard::SUBCOMMAND)).map_err(lost)?;
        }
        self.witness.log_at(preparation.log_of(witness::SUBCOMMAND));
        let lab = lab.prepare(&preparation).map_err(refused)?;
        let addresses: Vec<_> = addresses(plan, lab.as_ref())?.into_iter().collect();
        let hosts =
            plan.cells.iter().filter_map(|cell| cell.job.page()).flat_map(|page| &page.hosts).map(String::as_str);
        let pki = Pki::create(&work, &addresses, hosts)?;
        let documents = Documents::create(work.join("documents"), plan)?;
        if let Some(exporter) = &self.run.exporter {
            exporter.watch(sockets);
        }
        let keeps = |artifact| self.run.manifest.study.keep.contains(&artifact);
        if keeps(Artifact::Pcap) {
            self.run.folder.make_captures()?;
        }
        let key_log = (keeps(Artifact::Pcap) || keeps(Artifact::Keys)).then(|| work.join("keys.log"));
        Ok((lab, Files { pki, documents, results: work.join("results.jsonl"), key_log, folder: work }))
    }

    /// Probes every endpoint in each of its roles: it must refuse an unknown protocol, otherwise its reports are
    /// invalid.
    fn probe(&self) -> Result<(), RunError> {
        let plan = &self.run.manifest.plan;
        let mut asked = HashSet::new();
        let references = self.run.manifest.reference_jobs();
        for job in plan.cells.iter().map(|cell| &cell.job).chain(&references) {
            let server = job.server().map(|name| (name, Role::Server));
            let sidecar = job.sidecar().map(|name| (name, Role::Sidecar(Beside::Clients)));
            let control_plane = job.control_plane().map(|name| (name, Role::ControlPlane));
            let others = sidecar.into_iter().chain(control_plane);
            for (name, role) in server.into_iter().chain([(&job.client, Role::Client)]).chain(others) {
                if asked.insert((name, role)) {
                    debug!(endpoint = name, role = role.word(), "checking that it refuses an unknown protocol");
                    let endpoint: &Endpoint = &self.run.endpoint(name)?.endpoint;
                    let who = || format!("the endpoint `{name}` as {}", role.word());
                    refuses_unknown_protocol(endpoint, role, &self.run.folder.work(), plan.seed)
                        .map_err(|cause| RunError::endpoint(who(), cause))?;
                }
            }
        }
        Ok(())
    }

    /// Starts and ends each server that the user brought once. `false`: it was interrupted.
    fn rehearse(&self, lab: &mut dyn PreparedLab, files: &Files) -> Result<bool, RunError> {
        let plan = &self.run.manifest.plan;
        let mut started = HashSet::new();
        for trial in block(self.run, 0) {
            let servers = plan.cells.get(trial.cell).and_then(|cell| cell.job.servers());
            let Some(command) = servers.and_then(|servers| servers.command.as_ref()) else { continue };
            if !started.insert(command) {
                continue;
            }
            debug!(?command, "starting it once before the run");
            let context = self.context(files, plan);
            match context.rehearse(lab, &trial) {
                Err(TrialAbort::Interrupted) => return Ok(false),
                Err(TrialAbort::Run(error)) => return Err(error),
                Err(TrialAbort::Outcome(Outcome::Failed { blame: Blame::Server, reason })) => {
                    let log = self.run.folder.log(&trial, &server_log(0));
                    return Err(RunError::ServerDoesNotStart { reason: Box::new(reason), log });
                }
                // The trials themselves record what else is wrong.
                Ok(()) | Err(TrialAbort::Outcome(_)) => {}
            }
        }
        Ok(true)
    }

    /// Executes a trial of this plan, which is that of the run or has further cells.
    fn trial(
        &self,
        lab: &mut dyn PreparedLab,
        files: &Files,
        plan: &Plan,
        trial: &Trial,
    ) -> Result<Option<TrialRecord>, RunError> {
        self.context(files, plan).run(lab, trial)
    }

    fn context<'c>(&'c self, files: &'c Files, plan: &'c Plan) -> TrialContext<'c> {
        let run = &*self.run;
        TrialContext {
            plan,
            endpoints: &run.manifest.endpoints,
            observers: &run.manifest.observers,
            folder: &run.folder,
            files,
            limits: run.limits,
            keep: &run.manifest.study.keep,
            stop: self.stop,
            witness: &self.witness,
            interval: if run.manifest.may_load { Duration::ZERO } else { polite::INTERVAL },
            study: &run.manifest.study.name,
            exporter: run.exporter.as_deref(),
        }
    }

    /// Waits until the final counters of the last trial are scraped, then ends the export.
    fn wait_for_last_scrape(&mut self) {
        if let Some(exporter) = self.run.exporter.take() {
            self.report(Phase::Showing, None);
            exporter.linger(LAST_SCRAPE, self.stop);
        }
    }

    /// Whether no trial has succeeded yet; checked after each block.
    fn is_hopeless(&self) -> bool {
        self.run.trials.iter().all(|record| record.outcome != Outcome::Ok)
    }

    fn report(&mut self, phase: Phase, trial: Option<&Trial>) {
        let plan = &self.run.manifest.plan;
        let done = self.run.trials.len() as u32;
        let trials = (plan.cells.len() as u32).saturating_mul(plan.max_blocks);
        let progress = Progress {
            phase,
            block: trial.map_or_else(|| self.run.complete_blocks(), |trial| trial.block),
            blocks: plan.max_blocks,
            done,
            trials,
            cell: trial.and_then(|trial| plan.cells.get(trial.cell)).map(|cell| cell.label()).unwrap_or_default(),
            elapsed: self.begun.elapsed(),
            remaining: self.remaining(trials.saturating_sub(done)),
            last: self.last.clone(),
        };
        (self.progress)(&progress);
    }

    /// Upper estimate of the remaining time, from the mean length of a trial and from the budget.
    fn remaining(&self, trials: u32) -> Option<Duration> {
        let run = &*self.run;
        let done = u32::try_from(run.trials.len()).ok().filter(|done| *done > 0)?;
        let spent = Duration::from_nanos(run.spent_ns());
        let each = spent / done;
        let all = each.saturating_mul(trials);
        let plan = &run.manifest.plan;
        let Some(budget) = plan.budget else { return Some(all) };
        // A budget ends the run after the block in which it is spent, but not before the minimum of blocks.
        let cells = plan.cells.len() as u32;
        let least = each.saturating_mul(plan.min_blocks.saturating_mul(cells).saturating_sub(done));
        Some(all.min(budget.to_std().saturating_sub(spent).max(least)))
    }
}
