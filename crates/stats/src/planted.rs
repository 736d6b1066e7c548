//! The planted effects of a run, which are differences of known size, and their estimates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Value;
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::Plan;
use wirelab_model::planted::{NotPlanted, PlantedRecord, Planting, SIZES};

use crate::analysis::{CannotTell, Compared, Interval, Moment, Verdict};
use crate::bootstrap::Bootstrap;
use crate::compare::{MIN_BLOCKS, PairedEffect, Rule};
use crate::quantile;

/// Metrics that grow by the planted work: the server works before each response, and keeps its processor meanwhile.
pub const METRICS: [&str; 2] = ["response_median", "cpu_server_per_request"];

/// The planted effects of a run and their estimates.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Planted {
    /// Nothing was planted.
    Nothing(NotPlanted),
    /// Effects were planted.
    Effects(PlantedEffects),
}

/// The planted effects of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlantedEffects {
    /// The number of the cell that was slowed down.
    pub cell: usize,
    /// Planted trials.
    pub trials: u32,
    /// Planted trials that did not succeed.
    pub failed: u32,
    /// Share of the time of all trials.
    pub time: f64,
    /// Blocks that a verdict needs.
    pub blocks_needed: u32,
    /// One per metric with values and planted size, metric by metric.
    pub effects: Vec<PlantedEffect>,
    /// One per metric with values.
    pub biases: Vec<Bias>,
    /// Verdicts on A/A pairs in primary metrics: any difference is false.
    pub aa: AaVerdicts,
}

/// A planted effect, as the run found it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlantedEffect {
    /// The metric's name.
    pub metric: String,
    /// The intended size, as a share of the calibrated response time.
    pub size: f64,
    /// The true ratio: the planted work added to the median of the baseline, divided by this median.
    pub truth: f64,
    /// Blocks in which planted and baseline trial have a value.
    pub blocks: u32,
    /// The estimated ratio.
    pub ratio: Option<f64>,
    /// Its 95 % interval; absent before the end of the run.
    pub interval: Option<Interval>,
    /// Whether the run found the effect.
    pub detection: Detection,
}

/// Whether a run found a planted effect, by the rule for a single comparison without a margin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Detection {
    /// The values are larger, beyond chance.
    Found,
    /// No difference beyond chance.
    Missed,
    /// The values are smaller, beyond chance.
    Reversed,
    /// Fewer blocks than a verdict needs.
    TooFewBlocks,
    /// The run has not reached its planned end.
    NotEnded,
}

/// The deviation of estimates from the truth, over all planted sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Bias {
    /// The metric's name.
    pub metric: String,
    /// Blocks with a planted trial.
    pub blocks: u32,
    /// Median of the planted trials without their planted work, divided by the median of the baseline: 1 without bias.
    pub ratio: f64,
    /// Its 95 % interval; absent before the end of the run.
    pub interval: Option<Interval>,
}

/// Verdicts on A/A pairs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AaVerdicts {
    /// Pairs with enough blocks, in each primary metric.
    pub pairs: u32,
    /// Pairs with a verdict of lower or higher.
    pub differ: u32,
}

/// Analyses the planted trials of a run. `None` for a run of a version without planted effects.
#[must_use]
pub fn planted(
    planting: Option<&Planting>,
    plan: &Plan,
    records: &[TrialRecord],
    planted: &[PlantedRecord],
    (comparisons, moment): (&[Compared], Moment),
) -> Option<Planted> {
    let cell = match planting? {
        Planting::Nothing(why) => return Some(Planted::Nothing(why.clone())),
        Planting::Effects { cell, .. } => *cell,
    };
    let twin = plan.comparisons.iter().find(|pair| pair.aa && pair.baseline == cell).map(|pair| pair.cell);
    let (mut effects, mut biases) = (Vec::new(), Vec::new());
    let mut bootstrap = Bootstrap::new(plan.seed);
    for metric in METRICS {
        let of = |cell| by_block(records.iter().filter(|record| record.trial.cell == cell), metric);
        let baseline = of(cell);
        let noise = twin.and_then(|twin| {
            let [twin, baseline] = common(&of(twin), &baseline);
            PairedEffect::of(&twin, &baseline, &mut bootstrap).shown_ratio()
        });
        let rule = Rule { needed: MIN_BLOCKS, alpha: moment.alpha(), margin: 0.0, noise };
        for size in SIZES {
            let of_size: Vec<_> = planted.iter().filter(|planted| planted.size == size).collect();
            let values = by_block(of_size.iter().map(|planted| &planted.record), metric);
            let [values, baseline] = common(&values, &baseline);
            let work_ns = of_size.first().map_or(0.0, |planted| planted.work_ns as f64);
            let Some(median) = quantile::median(&baseline).filter(|median| *median > 0.0) else { continue };
            let effect = PairedEffect::of(&values, &baseline, &mut bootstrap);
            effects.push(PlantedEffect {
                metric: metric.to_owned(),
                size: size.0,
                truth: (median + work_ns) / median,
                blocks: effect.blocks,
                ratio: effect.shown_ratio(),
                interval: effect.shown_interval().filter(|_| moment != Moment::Underway),
                detection: detection(&effect, &rule, moment),
            });
        }
        biases.extend(bias(metric, planted, &baseline, moment, &mut bootstrap));
    }
    let ordinary: f64 = records.iter().map(|record| record.took_ns as f64).sum();
    let extra: f64 = planted.iter().map(|planted| planted.record.took_ns as f64).sum();
    Some(Planted::Effects(PlantedEffects {
        cell,
        trials: planted.len() as u32,
        failed: planted.iter().filter(|planted| planted.record.outcome != Outcome::Ok).count() as u32,
        time: if planted.is_empty() { 0.0 } else { extra / (ordinary + extra) },
        blocks_needed: MIN_BLOCKS,
        effects,
        biases,
        aa: if moment == Moment::Underway { AaVerdicts::default() } else { aa_verdicts(comparisons) },
    }))
}

fn detection(effect: &PairedEffect, rule: &Rule, moment: Moment) -> Detection {
    if moment == Moment::Underway {
        return Detection::NotEnded;
    }
    match effect.verdict(effect.p, rule) {
        Verdict::More => Detection::Found,
        Verdict::Less => Detection::Reversed,
        Verdict::CannotTell { why: CannotTell::TooFewBlocks | CannotTell::NoValues } => Detection::TooFewBlocks,
        Verdict::CannotTell { .. } | Verdict::Equivalent => Detection::Missed,
    }
}

/// The bias over all sizes. Planted trials of a block share its baseline trial, so each block counts once.
fn bias(
    metric: &str,
    planted: &[PlantedRecord],
    baseline: &BTreeMap<u32, f64>,
    moment: Moment,
    bootstrap: &mut Bootstrap,
) -> Option<Bias> {
    let mut without_work: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for planted in planted {
        if let Some(value) = value(&planted.record, metric) {
            without_work.entry(planted.record.trial.block).or_default().push(value - planted.work_ns as f64);
        }
    }
    let means = without_work.into_iter().map(|(block, all)| (block, all.iter().sum::<f64>() / all.len() as f64));
    let [values, baseline] = common(&means.collect(), baseline);
    let effect = PairedEffect::of(&values, &baseline, bootstrap);
    Some(Bias {
        metric: metric.to_owned(),
        blocks: effect.blocks,
        ratio: effect.shown_ratio()?,
        interval: effect.shown_interval().filter(|_| moment != Moment::Underway),
    })
}

fn aa_verdicts(comparisons: &[Compared]) -> AaVerdicts {
    let judged = |compared: &&Compared| {
        let none = [CannotTell::TooFewBlocks, CannotTell::NoValues, CannotTell::NotEnded];
        let is_judged = !none.map(|why| Verdict::CannotTell { why }).contains(&compared.verdict);
        compared.aa && !compared.exploratory && is_judged
    };
    let differs = |compared: &&Compared| matches!(compared.verdict, Verdict::Less | Verdict::More);
    let pairs = comparisons.iter().filter(judged);
    AaVerdicts { pairs: pairs.clone().count() as u32, differ: pairs.filter(differs).count() as u32 }
}

/// The finite values of a metric in successful trials by block.
fn by_block<'a>(records: impl Iterator<Item = &'a TrialRecord>, metric: &str) -> BTreeMap<u32, f64> {
    records.filter_map(|record| Some((record.trial.block, value(record, metric)?))).collect()
}

fn value(record: &TrialRecord, metric: &str) -> Option<f64> {
    let number = record.values.get(metric).filter(|_| record.outcome == Outcome::Ok).and_then(Value::number);
    number.filter(|number| number.is_finite())
}

/// The values of the blocks that both have.
fn common(one: &BTreeMap<u32, f64>, other: &BTreeMap<u32, f64>) -> [Vec<f64>; 2] {
    let pairs = one.iter().filter_map(|(block, value)| Some((*value, *other.get(block)?)));
    let (one, other) = pairs.unzip();
    [one, other]
}

#[cfg(test)]
#[path = "planted_tests.rs"]
mod tests;
