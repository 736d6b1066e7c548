//! The life cycle of one trial: fresh processes, one measured window, everything checked, everything ended.

use std::fs;
use std::path::Path;
use std::time::Instant;

use wirelab_lab::{PreparedLab, Role};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Side, Value, Values};
use wirelab_model::missing::Missing;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::plan::{Cell, Plan, Target, Trial};
use wirelab_model::reason::Reason;
use wirelab_model::spec::ConnectionPolicy;
use wirelab_model::study::Artifact;
use wirelab_model::timeline::Lifetimes;
use wirelab_observe::{Observer, Window};
use wirelab_stats::timeline;

use crate::error::RunError;
use crate::spec;
use crate::store::journal::timestamp;
use crate::trial::context::{Facts, TrialContext};
use crate::trial::endpoint_handle::TrialAbort;
use crate::trial::names::{client_log, server_log};
use crate::trial::preparation::PREPARATION_METRICS;
use crate::trial::results::{self, Results};
use crate::trial::results_error::ResultsError;
use crate::trial::start::{control, mesh};
use crate::trial::{distorted, drops, merge, verify};

impl TrialContext<'_> {
    /// Executes a trial; `None` if it was interrupted, in which case nothing of it stays.
    pub(crate) fn run(&self, lab: &mut dyn PreparedLab, trial: &Trial) -> Result<Option<TrialRecord>, RunError> {
        let at = timestamp();
        let begun = Instant::now();
        let mut facts = Facts::default();
        let measured = self.measure(lab, trial, &mut facts);
        let lifetimes = Lifetimes::of(&cell(self.plan, trial)?.job);
        let clients = (0..).take(lifetimes.clients.len()).map(client_log);
        let sidecars = mesh::logs(&cell(self.plan, trial)?.job, lifetimes.servers);
        let control_plane = cell(self.plan, trial)?.job.control_plane().map(|_| control::LOG.to_owned());
        let logs = (0..lifetimes.servers).map(server_log).chain(clients).chain(sidecars).chain(control_plane);
        let logs: Vec<_> = logs.map(|name| self.folder.log(trial, &name)).collect();
        let outcome = match measured {
            Ok(()) => Outcome::Ok,
            Err(TrialAbort::Outcome(outcome)) => {
                self.folder.has_room()?;
                self.keep_results(trial)?;
                outcome
            }
            Err(TrialAbort::Interrupted) => {
                for log in logs {
                    remove(&log)?;
                }
                self.folder.remove_kept(trial)?;
                return Ok(None);
            }
            Err(TrialAbort::Run(error)) => return Err(error),
        };
        if let Some(keys) = self.files.key_log.as_ref().filter(|_| self.keeps(Artifact::Keys)) {
            self.folder.keep_keys(trial, keys)?;
        }
        for log in logs {
            // Empty logs are the normal case and are removed.
            if fs::metadata(&log).is_ok_and(|about| about.len() == 0) {
                remove(&log)?;
            }
        }
        let (results, results_sha256) = facts.results.map(|kept| (kept.path, kept.sha256)).unzip();
        Ok(Some(TrialRecord {
            trial: *trial,
            at,
            took_ns: begun.elapsed().as_nanos() as u64,
            outcome,
            window_ns: facts.window_ns,
            values: facts.values,
            results,
            results_sha256,
            server: facts.server,
            client: facts.client,
            timeline: facts.timeline,
            clients: facts.portions,
            profile: facts.profile,
            lives: facts.lives,
            warmed_up: facts.warmed_up,
            processors: facts.processors,
            warnings: facts.warnings,
        }))
    }

    fn measure(&self, lab: &mut dyn PreparedLab, trial: &Trial, facts: &mut Facts) -> Result<(), TrialAbort> {
        let cell = cell(self.plan, trial)?;
        let more = cell.job.more_observers.iter().filter(|name| !self.observers.contains(name));
        let names: Vec<_> = self.observers.iter().chain(more).cloned().collect();
        let mut observers = observers(&names)?;
        // A leftover of another trial could pass for the results of a client that writes none.
        for number in 0..Lifetimes::of(&cell.job).clients.len() as u32 {
            remove(&spec::results_of(self.files, number))?;
        }
        if let Some(keys) = &self.files.key_log {
            // Clients append to this file.
            remove(keys)?;
        }
        self.conduct(lab, trial, cell, &mut observers, facts)?;

        let read = match &mut facts.timeline {
            Some(played) => merge::read(self.files, played),
            None if cell.job.load.clients > 1 => {
                merge::shared(self.files, cell.job.load.recording, &mut facts.portions)
            }
            None => results::read(&self.files.results, cell.job.load.recording),
        };
        let results = read.map_err(|error| unreadable(cell, &error))?;
        // Check loads first: the reason of a failed load is more specific than the checks below.
        if let Results::Loads(loads) = &results {
            verify::loads::loads(cell, loads).map_err(TrialAbort::Outcome)?;
        }
        // A program of the user does not say which protocol it negotiated.
        let negotiated = match cell.job.own_client {
            Some(_) => Ok(()),
            None => verify::negotiated(cell.job.protocol, &facts.client),
        };
        let checked = negotiated
            .and_then(|()| verify::in_force(Role::Server, &cell.job.transport, &facts.server))
            .and_then(|()| verify::in_force(Role::Client, &cell.job.transport, &facts.client))
            .and_then(|()| verify::results(cell, facts.window_ns, &results));
        let tally = checked.map_err(TrialAbort::Outcome)?;
        if let Some(played) = facts.timeline.as_ref().filter(|_| facts.has_clock) {
            verify::answered(&cell.job, played, &tally).map_err(TrialAbort::Outcome)?;
        }
        // A timeline compares more precise counts, and a browser makes many requests for each load.
        let is_steady = facts.timeline.is_none() && cell.job.page().is_none();
        if let Some(answered) = facts.answered.filter(|_| facts.has_clock && is_steady && facts.carried.is_none()) {
            verify::served(&cell.job, answered, &tally).map_err(TrialAbort::Outcome)?;
        }
        if let Some(seen) = observers.iter().find_map(|observer| observer.exchanges()) {
            let window_ns = facts.portions.is_empty().then_some(facts.window_ns);
            verify::witness::exchanges(seen, window_ns, &results, &tally).map_err(TrialAbort::Outcome)?;
        }
        if let Some(carried) = facts.carried.as_ref().filter(|_| facts.has_clock) {
            verify::carried(&cell.job, carried, facts.timeline.as_ref(), &tally).map_err(TrialAbort::Outcome)?;
        }

        let mut values = match &results {
            Results::Samples(samples) => wirelab_stats::summarise(samples, facts.window_ns),
            Results::Histograms(histograms) => wirelab_stats::summarise_histograms(histograms, facts.window_ns)
                .map_err(|error| unreadable(cell, &error.into()))?,
            Results::Loads(loads) => wirelab_stats::pages(loads),
            Results::Totals(totals) => wirelab_stats::summarise_totals(totals, facts.window_ns),
        };
        if let (Some(played), Some(timeline), Results::Samples(samples)) =
            (&mut facts.timeline, cell.job.timeline(), &results)
        {
            let window_ns = Lifetimes::of(&cell.job).window_ns;
            played.intervals = timeline::intervals(samples, window_ns);
            values.extend(timeline::values(timeline, played, samples, window_ns));
        }
        // A timeline changes the conditions within the window on purpose.
        if let (None, Results::Samples(samples)) = (&facts.timeline, &results) {
            facts.profile =
                wirelab_stats::stationarity::profile(samples, facts.window_ns).map(Vec::from).unwrap_or_default();
            if let ConnectionPolicy::Persistent { .. } = cell.job.load.connections {
                facts.lives = Some(wirelab_stats::ages::lives(samples));
            }
        }
        values.extend(wirelab_stats::clients(&facts.portions));
        values.extend(wirelab_stats::transport(facts.client_transport.as_deref(), facts.server_transport.as_deref()));
        let window = Window { ns: facts.window_ns, requests: tally.ok, bytes: tally.bytes };
        for observer in &mut observers {
            values.extend(observer.values(&window));
        }
        if let Some(remote_observer) = &mut facts.remote_observer {
            values.extend(remote_observer.values(window.ns, window.requests, window.bytes));
        }
        values.extend(facts.preparation.values());
        if let Target::Site(_) = cell.job.target {
            not_ours(&mut values);
        }
        let network = std::mem::take(&mut facts.network);
        values.extend(network.values);
        facts.warnings = network.warnings;
        facts.warnings.extend(tally.warnings(cell));
        facts.warnings.extend(drops::warnings(cell, &values));
        facts.warnings.extend(wirelab_stats::uneven(&cell.label(), &facts.portions, facts.window_ns));
        match distorted::by(&observers) {
            None => facts.results = Some(self.keep(trial, &results)?),
            // Samples slowed down by the observer are not kept either, so that no chart shows them.
            Some(observer) => {
                distorted::leave_its_own(&mut values, &observers);
                facts.warnings = vec![distorted::warning(observer, cell.label())];
                facts.timeline = None;
                facts.portions = Vec::new();
                facts.profile = Vec::new();
                facts.lives = None;
            }
        }
        facts.values = values;
        Ok(())
    }
}

/// Values about remote servers are never measured, whatever an observer reports.
fn not_ours(values: &mut Values) {
    let metrics =
        wirelab_observe::metrics().into_iter().chain(wirelab_stats::TRANSPORT_METRICS).chain(&PREPARATION_METRICS);
    for metric in metrics.filter(|metric| metric.side == Side::Server) {
        if let Some(value) = values.get_mut(metric.name) {
            *value = Value::missing(Missing::ForeignServer);
        }
    }
}

pub(super) fn cell<'a>(plan: &'a Plan, trial: &Trial) -> Result<&'a Cell, RunError> {
    plan.cells.get(trial.cell).ok_or_else(|| RunError::Refused {
        why: format!("trial {} is of cell {}, which the plan does not have", trial.number, trial.cell),
    })
}

/// Creates the observers for a trial.
pub(crate) fn observers(names: &[String]) -> Result<Vec<Box<dyn Observer>>, RunError> {
    let unknown = |name: &String| RunError::Refused { why: wirelab_observe::unknown(name) };
    names.iter().map(|name| wirelab_observe::create(name).ok_or_else(|| unknown(name))).collect()
}

fn unreadable(cell: &Cell, error: &ResultsError) -> TrialAbort {
    let (client, problem) = (cell.job.client.clone(), error.to_string());
    TrialAbort::failed(Blame::Client, Reason::Unreadable { client, problem })
}

fn remove(path: &Path) -> Result<(), RunError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(RunError::io("cannot remove", path)(error)),
        _ => Ok(()),
    }
}
