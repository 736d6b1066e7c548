//! Earlier runs, from which duration and sensitivity of a new one are expected.

use std::fs;
use std::path::{Path, PathBuf};

use wirelab_model::outcome::Outcome;
use wirelab_plan::EarlierTrial;
use wirelab_run::Run;

/// The newest runs that count for the duration: the machine and the endpoints change with time.
const RUNS: usize = 5;

/// The newest folders that are read: other labs and damaged runs are no reason to read years.
const FOLDERS: usize = 20;

/// The newest runs of a lab below a folder; empty if it has none.
pub fn earlier_runs(parent: &Path, lab: &str) -> Vec<Run> {
    let created = |path: &PathBuf| fs::metadata(path.join("manifest.json")).and_then(|facts| facts.modified()).ok();
    let entries = fs::read_dir(parent).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut folders: Vec<_> = entries.filter_map(|path| Some((created(&path)?, path))).collect();
    folders.sort_unstable_by(|one, other| other.cmp(one));
    let runs = folders.into_iter().take(FOLDERS).filter_map(|(_, path)| Run::open(&path).ok());
    runs.filter(|run| run.manifest().lab == lab).take(RUNS).collect()
}

/// The successful trials of these runs.
pub fn earlier_trials(runs: &[Run]) -> Vec<EarlierTrial> {
    let of_run = |run: &Run| {
        let cells = &run.manifest().plan.cells;
        let ok = run.trials().iter().filter(|record| record.outcome == Outcome::Ok && record.window_ns > 0);
        let trial = |record: &wirelab_model::journal::TrialRecord| {
            let job = cells.get(record.trial.cell)?.job.clone();
            Some(EarlierTrial { job, took_ns: record.took_ns, window_ns: record.window_ns })
        };
        ok.filter_map(trial).collect::<Vec<_>>()
    };
    runs.iter().flat_map(of_run).collect()
}
