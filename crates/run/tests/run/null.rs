//! `wirelab run null --lab fake` many times with a known truth: the built-in study through plan, trials, journal,
//! Parquet, stopping rule and analysis. Seeds are fixed, so the counts are fixed too. The bounds are those of the
//! documentation.
//!
//! `cargo test --release -p wirelab-run --test run null -- --nocapture` prints the table of `docs/statistics.md`.
//!
//! Hundreds of runs of up to 270 trials take minutes without optimisation, so debug builds omit these tests.

use std::collections::BTreeSet;
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use crate::support::planned;
use indexmap::IndexMap;
use wirelab_lab::Fake;
use wirelab_lab::fake::{Noise, Script};
use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::Plan;
use wirelab_model::study::Study;
use wirelab_run::Run;
use wirelab_stats::analysis::{Compared, Moment, Verdict};

/// A tenth of the requests that fit into the study's 100 ms. A trial's median is then uncertain by 2 %, in addition to
/// [`SIGMA`].
const REQUESTS: &str = "requests=100";

/// Standard deviation of the logarithm of a trial's median, in the first and the last run: a busy virtual machine.
const SIGMA: (f64, f64) = (0.05, 0.08);

/// Blocks that differ by 4 %, a machine that becomes 5 % slower during the 270 trials of 30 blocks, requests that
/// scatter by 15 %, and one request in 200 that takes eight times as long.
const NOISE: Noise =
    Noise { request: 0.15, trial: 0.0, block: 0.04, drift: 0.05 / 270.0, spikes: 0.005, spike_factor: 8.0 };

/// Parallel run folders per test. The tests of this file run side by side, which is enough for two processors, and few
/// enough for a container's 64 MiB of shared memory.
const WORKERS: u32 = 1;

/// A simulated study.
struct Variant {
    /// The truth: response times of arm `b` divided by those of arm `a`.
    ratio: f64,
    /// Values of `--set` besides [`REQUESTS`].
    sets: &'static [&'static str],
    /// Number of runs. Each compares the arms three times (h1, h2, h3) and has three A/A pairs.
    runs: u32,
    /// The numbers of blocks at which the run is analysed; empty: only at its end. The first 10 blocks of a run equal a
    /// run of 10 blocks, because trials do not depend on later ones.
    looks: &'static [u32],
}

/// The comparisons of a run after a number of blocks.
struct Look {
    run: u32,
    /// The requested number of blocks; `None` at the end of the run.
    at: Option<u32>,
    blocks: u32,
    compared: Vec<Compared>,
}

impl Variant {
    fn simulate(&self) -> Vec<Look> {
        let (next, looks) = (AtomicU32::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..WORKERS {
                scope.spawn(|| {
                    let numbers = std::iter::from_fn(|| Some(next.fetch_add(1, Ordering::Relaxed)));
                    for run in numbers.take_while(|run| *run < self.runs) {
                        let of_run = self.run(run);
                        looks.lock().unwrap().extend(of_run);
                    }
                });
            }
        });
        looks.into_inner().unwrap()
    }

    /// Executes one run and analyses it as a report does.
    fn run(&self, number: u32) -> Vec<Look> {
        let (study, plan) = self.study(number);
        let script = self.script(number, &plan);
        let parent = folder();
        let run = execute(study, plan, script, parent.path());
        assert!(run.trials().iter().all(|record| record.outcome == Outcome::Ok));
        let end = run.trials().iter().map(|record| record.trial.block + 1).max().unwrap_or_default();
        let looks: Vec<_> = match self.looks {
            [] => vec![(None, end)],
            looks => looks.iter().map(|blocks| (Some(*blocks), *blocks)).collect(),
        };
        let looks =
            looks.into_iter().map(|(at, blocks)| Look { run: number, at, blocks, compared: compare(&run, blocks) });
        looks.collect()
    }

    fn study(&self, run: u32) -> (Study, Plan) {
        let text = wirelab_plan::find("null").unwrap().text;
        let seed = format!("seed={}", run + 1);
        let sets: Vec<_> = [REQUESTS, &seed].iter().chain(self.sets).map(|set| (*set).to_owned()).collect();
        let study = wirelab_plan::resolve(wirelab_plan::parse(text, "null").unwrap(), None, &sets).unwrap();
        let (plan, _) = wirelab_plan::plan(&study).unwrap();
        (study, plan)
    }

    /// Simulated latencies with this file's noise, and with arm `b` at `ratio`.
    fn script(&self, run: u32, plan: &Plan) -> Script {
        let share = f64::from(run) / f64::from(self.runs - 1);
        let noise = Noise { trial: SIGMA.0 + (SIGMA.1 - SIGMA.0) * share, ..NOISE };
        let factors: Vec<_> =
            plan.cells.iter().map(|cell| if cell.levels["arm"] == "b" { self.ratio } else { 1.0 }).collect();
        let mut script = Script::plausible().with_noise(noise).with_planted(move |case| factors[case.cell]);
        script.seed = u64::from(run) + 1;
        script
    }
}

/// A folder in memory if possible, because a run syncs three times per trial, which on a disk takes longer than
/// everything else.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn execute(study: Study, plan: Plan, script: Script, parent: &Path) -> Run {
    let mut lab = Fake::new(script);
    let mut run = planned(parent, study, plan, &["builtin"], &lab).unwrap();
    run.execute(&mut lab, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    Run::open(run.folder()).unwrap()
}

/// The comparisons of the run's first blocks.
fn compare(run: &Run, blocks: u32) -> Vec<Compared> {
    let study = &run.manifest().study;
    let mut records: Vec<TrialRecord> =
        run.trials().iter().filter(|record| record.trial.block < blocks).cloned().collect();
    for record in &mut records {
        // Estimates of metrics that are not compared would take most of the time.
        record.values.retain(|name, _| study.compare.metrics.contains(name));
    }
    let analysis = wirelab_stats::analyse(study, &run.manifest().plan, &records, &[], Moment::Ended);
    assert_eq!(analysis.complete_blocks, blocks);
    analysis.comparisons
}

/// The results of the comparisons of one kind in one metric.
#[derive(Default)]
struct Tally {
    comparisons: u32,
    less: u32,
    more: u32,
    equivalent: u32,
    /// Comparisons with P at most 5 % before any correction.
    significant: u32,
    runs: BTreeSet<u32>,
    /// The runs with at least one verdict of less or more.
    telling: BTreeSet<u32>,
    blocks: u32,
}

impl Tally {
    fn add(&mut self, look: &Look, compared: &Compared) {
        self.comparisons += 1;
        self.blocks += look.blocks;
        self.runs.insert(look.run);
        self.significant += u32::from(compared.p.is_some_and(|p| p <= 0.05));
        match compared.verdict {
            Verdict::Less => self.less += 1,
            Verdict::More => self.more += 1,
            Verdict::Equivalent => self.equivalent += 1,
            Verdict::CannotTell { .. } => {}
        }
        if matches!(compared.verdict, Verdict::Less | Verdict::More) {
            self.telling.insert(look.run);
        }
    }

    fn share(&self, count: u32) -> f64 {
        f64::from(count) / f64::from(self.comparisons)
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} | {} |", f64::from(self.blocks) / f64::from(self.comparisons), self.comparisons)?;
        let cannot = self.comparisons - self.less - self.more - self.equivalent;
        for count in [self.less, self.more, self.equivalent, cannot, self.significant] {
            write!(f, " {:.1} % |", 100.0 * self.share(count))?;
        }
        write!(f, " {} of {} |", self.telling.len(), self.runs.len())
    }
}

/// By A/A pair or not, metric and number of blocks.
type Tallies = IndexMap<(bool, String, Option<u32>), Tally>;

/// The tallies of a variant, printed as rows of the documentation's table.
fn tallies(variant: &Variant) -> Tallies {
    let looks = variant.simulate();
    let mut tallies = Tallies::new();
    for look in &looks {
        // The fake lab has no processes and thus no processor time, so two of the study's metrics have no values. A/A
        // pairs of runs with a planted difference equal those of the same seeds without one.
        let counts = |compared: &&Compared| compared.blocks > 0 && (variant.ratio == 1.0 || !compared.aa);
        for compared in look.compared.iter().filter(counts) {
            tallies.entry((compared.aa, compared.metric.clone(), look.at)).or_default().add(look, compared);
        }
    }
    tallies.sort_keys();
    let arms = if variant.ratio == 1.0 { "none".to_owned() } else { format!("{:.0} %", 100.0 * (variant.ratio - 1.0)) };
    let rows = tallies.iter().map(|((aa, metric, at), tally)| {
        let kind = if *aa { "none (A/A pair)" } else { &arms };
        let at = at.map_or_else(|| "until precise".to_owned(), |blocks| blocks.to_string());
        format!("| {kind} | {metric} | {at} | {tally}\n")
    });
    // One call, so that the rows of parallel tests do not mix.
    println!("{}", rows.collect::<String>());
    tallies
}

/// Expects at least 200 comparisons, at most 5 % of them with a difference, for arms and A/A pairs, in each metric and
/// after each number of blocks.
fn find_nothing(tallies: &Tallies) {
    for (which, tally) in tallies {
        assert!(tally.comparisons >= 200, "{which:?}: {} comparisons", tally.comparisons);
        assert!(tally.share(tally.less + tally.more) <= 0.05, "{which:?}: {tally}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn at_most_five_in_a_hundred_comparisons_of_equal_arms_differ() {
    let tallies = tallies(&Variant { ratio: 1.0, sets: &[], runs: 67, looks: &[10, 20, 30] });
    assert_eq!(tallies.len(), 2 * 3 * 3, "arms and pairs, three metrics, three numbers of blocks");
    find_nothing(&tallies);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn at_most_five_in_a_hundred_differ_in_runs_that_stop_early() {
    // With this noise, the default of 5 % hardly ever ends a run before its 30th block.
    let sets = &["blocks.min=10", "blocks.precision=8 %"];
    let tallies = tallies(&Variant { ratio: 1.0, sets, runs: 67, looks: &[] });
    assert_eq!(tallies.len(), 2 * 3);
    find_nothing(&tallies);
    for tally in tallies.values() {
        assert!(tally.blocks < 25 * tally.comparisons, "the rule hardly ever stopped: {tally}");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "takes minutes without optimisation")]
fn a_planted_difference_of_ten_percent_is_found_more_often_with_more_blocks_and_never_reversed() {
    let tallies = tallies(&Variant { ratio: 1.1, sets: &[], runs: 34, looks: &[10, 20, 30] });
    for (blocks, at_least) in [(10, 0.50), (20, 0.85), (30, 0.92)] {
        let tally = &tallies[&(false, "response_median".to_owned(), Some(blocks))];
        assert_eq!(tally.comparisons, 102);
        assert!(tally.share(tally.more) >= at_least, "{blocks} blocks: {tally}");
    }
    for ((_, metric, blocks), tally) in &tallies {
        // A longer response time means a lower goodput.
        let reversed = if metric == "goodput" { tally.more } else { tally.less };
        assert_eq!(reversed + tally.equivalent, 0, "{metric} after {blocks:?} blocks: {tally}");
    }
}
