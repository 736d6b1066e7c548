//! Two runs compared, cell by cell.
//!
//! The runs were not interleaved, so their trials have no common blocks: the tests are unpaired ([`brunner_munzel`]),
//! and each run is resampled by itself. No test can tell a change of the server from a change of the machine between
//! the runs. The A/A pairs show the noise within each run, which is a lower bound of the noise between them.

mod matching;

use serde::Serialize;
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::{Better, Metric};
use wirelab_model::plan::Plan;
use wirelab_model::requirement::{Limit, Statement};
use wirelab_model::table::Design;

use crate::analysis::{CannotTell, Interval, RequirementVerdict, Requiring, Verdict};
use crate::bootstrap::Bootstrap;
use crate::brunner_munzel::brunner_munzel;
use crate::compare::{ALPHA, MIN_BLOCKS, PairedEffect, Rule, needed};
use crate::failures::{FAILURE_MARGIN, failure_share, is_bounded, is_bounded_interval};
use crate::holm::holm;
use crate::quantile;
use crate::requirements::joint_verdict;
use crate::trials::Trials;

pub use matching::{Pair, pairs};

/// A run to compare.
#[derive(Debug, Clone, Copy)]
pub struct OfRun<'a> {
    pub plan: &'a Plan,
    /// Its trials, in the order of the journal.
    pub records: &'a [TrialRecord],
}

/// The wanted comparison.
#[derive(Debug, Clone, Copy)]
pub struct Wanted<'a> {
    /// The metrics, by name.
    pub metrics: &'a [String],
    /// The largest difference that does not matter.
    pub margin: f64,
    /// Relative requirements on the second run.
    pub require: &'a [Statement],
    /// The seed of the bootstrap.
    pub seed: u64,
}

/// The comparison of two runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Between {
    /// The cells that both runs have; A/A twins are omitted.
    pub pairs: Vec<Pair>,
    /// The cells of the first and of the second run without a partner.
    pub alone: [Vec<usize>; 2],
    /// One per metric and pair, metric by metric.
    pub changes: Vec<Change>,
    /// The A/A pairs of both runs: one per metric and baseline that both runs have.
    pub floors: Vec<Floors>,
    /// The requirements, in their order.
    pub requirements: Vec<RequiredChange>,
}

/// The change of a metric from the first to the second run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// The number of the pair.
    pub pair: usize,
    /// The metric's name.
    pub metric: String,
    /// The numbers of trials with a value or a failure.
    pub trials: [u32; 2],
    /// The medians over trials; `None` without values, or if failures make it infinite.
    pub medians: [Option<f64>; 2],
    /// Median of the second run divided by that of the first.
    pub ratio: Option<f64>,
    /// The 95 % bootstrap interval of the ratio.
    pub interval: Option<Interval>,
    /// P value of the test of Brunner and Munzel, two-sided.
    pub p: Option<f64>,
    /// The same after Holm's correction over all changes.
    pub p_holm: Option<f64>,
    /// The verdict on the second run against the first.
    #[serde(flatten)]
    pub verdict: Verdict,
}

/// The A/A pairs of a baseline in both runs: the ratio of two equal cells of the same run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Floors {
    /// The number of the baseline's pair.
    pub pair: usize,
    /// The metric's name.
    pub metric: String,
    /// The ratio of each run's A/A pair.
    pub ratios: [Option<f64>; 2],
    /// Their 95 % intervals: the noise floors.
    pub intervals: [Option<Interval>; 2],
    /// Whether the two intervals do not overlap: the runs were disturbed differently.
    pub drifted: bool,
}

/// A requirement on the second run, relative to the first.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RequiredChange {
    /// The requirement; its baseline is the first run.
    pub that: Statement,
    /// One per pair: `cell` is that of the second run, `baseline` that of the first.
    pub tests: Vec<Requiring>,
    /// The verdict of all tests together.
    #[serde(flatten)]
    pub verdict: RequirementVerdict,
}

/// Compares two runs. `metrics` declare the better direction.
#[must_use]
pub fn between(runs: [OfRun<'_>; 2], wanted: &Wanted<'_>, metrics: &[&Metric]) -> Between {
    let (pairs, alone) = pairs(runs.map(|run| run.plan));
    let trials = runs.map(|run| Trials::of(run.plan, run.records, metrics));
    let mut bootstrap = Bootstrap::new(wanted.seed);
    let data = Data { runs, trials: &trials, pairs: &pairs };
    let floors: Vec<_> =
        wanted.metrics.iter().flat_map(|metric| data.floors(metric, &mut bootstrap)).collect::<Vec<_>>();
    let changes = data.changes(wanted, &floors, &mut bootstrap);
    let requirements = data.requirements(wanted, &floors, &mut bootstrap);
    Between { alone, changes, floors, requirements, pairs }
}

struct Data<'a> {
    runs: [OfRun<'a>; 2],
    trials: &'a [Trials<'a>; 2],
    pairs: &'a [Pair],
}

impl Data<'_> {
    /// The values of a pair's cells; a failed trial has the worst rank.
    fn values(&self, pair: &Pair, metric: &str) -> [Vec<f64>; 2] {
        let of = |run: usize| self.trials[run].ranks(pair.cells[run], metric).into_values().collect();
        [of(0), of(1)]
    }

    fn changes(&self, wanted: &Wanted<'_>, floors: &[Floors], bootstrap: &mut Bootstrap) -> Vec<Change> {
        let mut found = Vec::new();
        for metric in wanted.metrics {
            for (number, pair) in self.pairs.iter().enumerate() {
                let values = self.values(pair, metric);
                let effect = PairedEffect::under(Design::Independent, &values[1], &values[0], bootstrap);
                found.push((metric, number, values, effect));
            }
        }
        let p: Vec<f64> = found.iter().filter_map(|(.., effect)| effect.p).collect();
        let needed = needed(Design::Independent, p.len().max(1), ALPHA);
        let mut corrected = holm(&p).into_iter();
        let change = |(metric, pair, values, effect): (&String, usize, [Vec<f64>; 2], PairedEffect)| {
            let p_holm = effect.p.and_then(|_| corrected.next());
            let rule = Rule { needed, alpha: ALPHA, margin: wanted.margin, noise: noise(floors, metric) };
            let verdict = effect.verdict(p_holm, &rule);
            Change {
                pair,
                metric: metric.clone(),
                trials: values.each_ref().map(|values| values.len() as u32),
                medians: values.each_ref().map(|values| quantile::median(values).filter(|median| is_bounded(*median))),
                ratio: effect.shown_ratio(),
                interval: effect.shown_interval(),
                p: effect.p,
                p_holm,
                verdict: self.withhold(verdict, &self.pairs[pair], metric),
            }
        };
        found.into_iter().map(change).collect()
    }

    /// No favourable verdict for the run that fails more: its other requests are a selection.
    fn withhold(&self, verdict: Verdict, pair: &Pair, metric: &str) -> Verdict {
        let more = self.fails_more(pair);
        let is_better = match self.trials[1].better(metric) {
            Better::Lower => verdict == Verdict::Less,
            Better::Higher => verdict == Verdict::More,
        };
        let is_misleading = match verdict {
            Verdict::CannotTell { .. } => false,
            Verdict::Equivalent => more.is_some(),
            Verdict::Less | Verdict::More => more == Some(if is_better { 1 } else { 0 }),
        };
        if is_misleading { Verdict::CannotTell { why: CannotTell::UnequalFailures } } else { verdict }
    }

    /// The run that fails more in a pair.
    fn fails_more(&self, pair: &Pair) -> Option<usize> {
        let share = |run: usize| failure_share(&self.trials[run], pair.cells[run]);
        let (first, second) = (share(0)?, share(1)?);
        if second > first + FAILURE_MARGIN {
            return Some(1);
        }
        (first > second + FAILURE_MARGIN).then_some(0)
    }

    /// The A/A pairs of a metric, for each pair whose cells both have a twin.
    fn floors(&self, metric: &str, bootstrap: &mut Bootstrap) -> Vec<Floors> {
        let mut found = Vec::new();
        for (number, pair) in self.pairs.iter().enumerate() {
            let twin =
                |run: usize| self.runs[run].plan.cells.iter().position(|cell| cell.twin_of == Some(pair.cells[run]));
            let (Some(first), Some(second)) = (twin(0), twin(1)) else { continue };
            let mut effect = |run: usize, twin: usize| {
                let values = self.trials[run].paired(&[twin, pair.cells[run]], metric);
                PairedEffect::of(&values[0], &values[1], bootstrap)
            };
            let effects = [effect(0, first), effect(1, second)];
            let intervals = effects.each_ref().map(PairedEffect::shown_interval);
            let drifted = match intervals {
                [Some(first), Some(second)] => first.high < second.low || second.high < first.low,
                _ => false,
            };
            let ratios = effects.each_ref().map(PairedEffect::shown_ratio);
            found.push(Floors { pair: number, metric: metric.to_owned(), ratios, intervals, drifted });
        }
        found
    }

    fn requirements(&self, wanted: &Wanted<'_>, floors: &[Floors], bootstrap: &mut Bootstrap) -> Vec<RequiredChange> {
        let mut of = |that: &Statement| -> Vec<Evidence> {
            let Limit::NoWorse { by, .. } = &that.limit else { return Vec::new() };
            let by = by.value();
            self.pairs.iter().map(|pair| self.no_worse(pair, &that.metric, by, floors, bootstrap)).collect()
        };
        let evidence: Vec<Vec<Evidence>> = wanted.require.iter().map(&mut of).collect();
        let against: Vec<f64> = evidence.iter().flatten().map(|one| one.shown.p_not_met).collect();
        let mut corrected = holm(&against).into_iter();
        let result = |(that, evidence): (&Statement, Vec<Evidence>)| {
            let judge = |one: Evidence| one.judge(corrected.next().unwrap_or(1.0));
            let tests: Vec<Requiring> = evidence.into_iter().map(judge).collect();
            RequiredChange { that: that.clone(), verdict: joint_verdict(&tests), tests }
        };
        wanted.require.iter().zip(evidence).map(result).collect()
    }

    /// The second run is worse than the first by at most a share. The test and the interval of the ratio must agree.
    fn no_worse(&self, pair: &Pair, metric: &str, by: f64, floors: &[Floors], bootstrap: &mut Bootstrap) -> Evidence {
        let [first, second] = self.values(pair, metric);
        let better = self.trials[1].better(metric);
        let bound = match better {
            Better::Lower => 1.0 + by,
            Better::Higher => 1.0 - by,
        };
        let allowed: Vec<f64> = first.iter().map(|value| value * bound).collect();
        let (p_kept, p_violated) = match better {
            Better::Lower => one_sided(&allowed, &second),
            Better::Higher => one_sided(&second, &allowed),
        };
        let ratio = quantile::median(&second).zip(quantile::median(&first)).map(|(second, first)| second / first);
        let ratio = ratio.filter(|ratio| is_bounded(*ratio));
        let confidence = 1.0 - 2.0 * ALPHA;
        let interval = ratio
            .and_then(|_| bootstrap.under(Design::Independent, &[&second, &first], |medians| medians[0] / medians[1]))
            .map(|distribution| distribution.interval(confidence));
        let (is_kept, is_violated) = match (interval, better) {
            (Some(interval), Better::Lower) => (interval.high <= bound, interval.low > bound),
            (Some(interval), Better::Higher) => (interval.low >= bound, interval.high < bound),
            (None, _) => (false, false),
        };
        let noise = noise(floors, metric);
        let is_noise = ratio.zip(noise).is_some_and(|(ratio, noise)| ratio.ln().abs() <= noise.ln().abs());
        Evidence {
            shown: Requiring {
                cell: pair.cells[1],
                baseline: Some(pair.cells[0]),
                blocks: first.len().min(second.len()) as u32,
                size: ratio,
                interval: interval.filter(is_bounded_interval),
                blocks_to_decide: None,
                p_met: if is_kept { p_kept } else { 1.0 },
                p_not_met: if is_violated { p_violated } else { 1.0 },
                verdict: RequirementVerdict::CannotTell { why: CannotTell::NoValues },
            },
            no_met: (self.fails_more(pair) == Some(1)).then_some(CannotTell::UnequalFailures),
            no_not_met: is_noise.then_some(CannotTell::NoiseFloor),
        }
    }
}

/// The evidence of a pair's trials on a requirement.
struct Evidence {
    /// With uncorrected P values.
    shown: Requiring,
    /// A reason to withhold the verdict `met`.
    no_met: Option<CannotTell>,
    /// A reason to withhold the verdict `not met`.
    no_not_met: Option<CannotTell>,
}

impl Evidence {
    fn judge(self, p_not_met: f64) -> Requiring {
        let cannot = |why| RequirementVerdict::CannotTell { why };
        let verdict = match &self.shown {
            shown if shown.blocks == 0 => cannot(CannotTell::NoValues),
            shown if shown.blocks < MIN_BLOCKS => cannot(CannotTell::TooFewBlocks),
            shown if shown.p_met <= ALPHA => self.no_met.map_or(RequirementVerdict::Met, cannot),
            _ if p_not_met <= ALPHA => self.no_not_met.map_or(RequirementVerdict::NotMet, cannot),
            shown if shown.p_not_met <= ALPHA => cannot(CannotTell::Correction),
            _ => cannot(CannotTell::TooNoisy),
        };
        Requiring { p_not_met, verdict, ..self.shown }
    }
}

/// P values of the hypotheses that the second values are larger, and that they are smaller.
fn one_sided(first: &[f64], second: &[f64]) -> (f64, f64) {
    let Some(test) = brunner_munzel(first, second) else { return (1.0, 1.0) };
    let (likely, unlikely) = (1.0 - test.p / 2.0, test.p / 2.0);
    if test.statistic > 0.0 { (likely, unlikely) } else { (unlikely, likely) }
}

/// The A/A ratio of either run that is farthest from 1, over all baselines.
fn noise(floors: &[Floors], metric: &str) -> Option<f64> {
    let ratios = floors.iter().filter(|floor| floor.metric == metric).flat_map(|floor| floor.ratios).flatten();
    ratios.max_by(|one, other| one.ln().abs().total_cmp(&other.ln().abs()))
}

#[cfg(test)]
#[path = "between_tests.rs"]
mod tests;
