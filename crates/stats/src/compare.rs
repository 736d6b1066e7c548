//! Cells compared with their baselines.

use wirelab_model::plan::{Comparison, Plan};
use wirelab_model::study::Study;
use wirelab_model::table::Design;

use crate::analysis::{CannotTell, Compared, Interval, Verdict};
use crate::bootstrap::Bootstrap;
use crate::failures::{is_bounded, is_bounded_interval, withhold};
use crate::holm::holm;
use crate::quantile;
use crate::rank_sum;
use crate::trials::Trials;
use crate::wilcoxon;

/// The smallest number of blocks for a verdict.
pub const MIN_BLOCKS: u32 = 10;

/// The level of tests.
pub const ALPHA: f64 = 0.05;

/// Blocks that a verdict needs if `family` comparisons share Holm's correction: at least [`MIN_BLOCKS`], and enough for significance
/// of the smallest P value of the rank test with n blocks, 2 / 2^n.
#[must_use]
pub fn blocks_needed(family: usize) -> u32 {
    let floor = (2.0 * family as f64 / ALPHA).log2().ceil();
    MIN_BLOCKS.max(floor as u32)
}

/// The same for a design. Without blocks it is the number of observations of each cell: with n observations each, the smallest P value
/// is 2 divided by the number of ways to choose n of 2n.
#[must_use]
pub fn needed(design: Design, family: usize) -> u32 {
    if design == Design::Blocks {
        return blocks_needed(family);
    }
    let choices = |n: u32| (1..=n).map(|k| f64::from(n + k) / f64::from(k)).product::<f64>();
    (MIN_BLOCKS..).find(|n| 2.0 * family as f64 / choices(*n) <= ALPHA).unwrap_or(u32::MAX)
}

/// Every comparison of the plan in every compared metric, metric by metric.
pub fn compare(study: &Study, plan: &Plan, trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Vec<Compared> {
    study.compare.metrics.iter().flat_map(|metric| compare_in(metric, study, plan, trials, bootstrap)).collect()
}

fn compare_in(
    metric: &str,
    study: &Study,
    plan: &Plan,
    trials: &Trials<'_>,
    bootstrap: &mut Bootstrap,
) -> Vec<Compared> {
    let effects: Vec<_> = plan
        .comparisons
        .iter()
        .map(|comparison| {
            let values = trials.paired(&[comparison.cell, comparison.baseline], metric);
            PairedEffect::under(trials.design(), &values[0], &values[1], bootstrap)
        })
        .collect();
    let mut corrected = corrected(&plan.comparisons, &effects).into_iter();
    let aa_pairs = plan.comparisons.iter().filter(|comparison| comparison.aa).count();
    let needed = needed(trials.design(), plan.comparisons.len() - aa_pairs);
    let floors: Vec<_> = plan
        .comparisons
        .iter()
        .zip(&effects)
        .filter(|(comparison, _)| comparison.aa)
        .map(|(comparison, effect)| (comparison.baseline, effect.shown_interval()))
        .collect();

    let compared = plan.comparisons.iter().zip(effects).map(|(comparison, effect)| {
        let p_holm = if comparison.aa || effect.p.is_none() { None } else { corrected.next() };
        // An A/A pair is no hypothesis of the study. Bonferroni's correction over the pairs bounds their false alarms.
        let p = if comparison.aa { effect.p.map(|p| (p * aa_pairs as f64).min(1.0)) } else { p_holm };
        let needed = if comparison.aa { MIN_BLOCKS } else { needed };
        let verdict = effect.verdict(needed, p, study.compare.margin.0);
        let floor = floors.iter().find(|(baseline, _)| *baseline == comparison.baseline && !comparison.aa);
        Compared {
            cell: comparison.cell,
            baseline: comparison.baseline,
            aa: comparison.aa,
            metric: metric.to_owned(),
            blocks: effect.blocks,
            ratio: effect.shown_ratio(),
            interval: effect.shown_interval(),
            p: effect.p,
            p_holm,
            noise_floor: floor.and_then(|(_, interval)| *interval),
            verdict: withhold(verdict, [comparison.cell, comparison.baseline], metric, trials),
        }
    });
    compared.collect()
}

/// Holm's correction over the comparisons with a P value, without A/A pairs, in their order.
fn corrected(comparisons: &[Comparison], effects: &[PairedEffect]) -> Vec<f64> {
    let family = comparisons.iter().zip(effects).filter(|(comparison, _)| !comparison.aa);
    holm(&family.filter_map(|(_, effect)| effect.p).collect::<Vec<_>>())
}

/// The difference of two cells over their common blocks, or over all their values without blocks.
#[derive(Debug, Clone, PartialEq)]
pub struct PairedEffect {
    /// Blocks in which both have a value; without blocks, the smaller number of values.
    pub blocks: u32,
    /// Ratio of medians; `None` without values, or if the baseline's median is 0.
    pub ratio: Option<f64>,
    /// The 95 % interval of the ratio.
    pub interval_95: Option<Interval>,
    /// The 90 % interval of the ratio. Its position within the margin equals two one-sided tests at 5 % (Schuirmann 1987).
    pub interval_90: Option<Interval>,
    /// P value of the rank test, two-sided, uncorrected.
    pub p: Option<f64>,
    /// The 95 % interval of the difference of medians, if values of 0 make the ratio meaningless.
    pub difference: Option<Interval>,
    /// Whether both have the same value in every block; without blocks, whether all values are equal.
    pub equal: bool,
}

impl PairedEffect {
    /// The effect from values in the same order of blocks.
    #[must_use]
    pub fn of(cell: &[f64], baseline: &[f64], bootstrap: &mut Bootstrap) -> Self {
        Self::under(Design::Blocks, cell, baseline, bootstrap)
    }

    /// The effect in a design; without blocks the lists may differ in length.
    #[must_use]
    pub fn under(design: Design, cell: &[f64], baseline: &[f64], bootstrap: &mut Bootstrap) -> Self {
        let ratio = quantile::median(cell).zip(quantile::median(baseline)).map(|(a, b)| a / b);
        let ratio = ratio.filter(|ratio| ratio.is_finite());
        let ratios = ratio.and_then(|_| bootstrap.under(design, &[cell, baseline], |m| m[0] / m[1]));
        let differences = match ratios {
            Some(_) => None,
            None => bootstrap.under(design, &[cell, baseline], |m| m[0] - m[1]),
        };
        Self {
            blocks: cell.len().min(baseline.len()) as u32,
            ratio,
            interval_95: ratios.as_ref().map(|d| d.interval(0.95)),
            interval_90: ratios.as_ref().map(|d| d.interval(0.90)),
            p: rank_test(design, cell, baseline),
            difference: differences.map(|d| d.interval(0.95)),
            equal: match design {
                Design::Blocks => cell == baseline,
                Design::Independent => cell.iter().chain(baseline).all(|value| cell.first() == Some(value)),
            },
        }
    }

    /// The ratio, unless failures make it infinite.
    #[must_use]
    pub fn shown_ratio(&self) -> Option<f64> {
        self.ratio.filter(|ratio| is_bounded(*ratio))
    }

    /// The interval, unless failures make an end of it infinite.
    #[must_use]
    pub fn shown_interval(&self) -> Option<Interval> {
        self.interval_95.filter(is_bounded_interval)
    }

    /// The verdict. `p` is the P value after correction, `margin` a share.
    ///
    /// Equivalent: the 90 % interval lies within 1/(1+margin) to 1+margin. Otherwise less or more: P is at most 5 % and the 95 %
    /// interval lies on one side of 1. A significant difference within the margin is thus equivalent, and no verdict rests on the P
    /// value or on the interval alone.
    #[must_use]
    pub fn verdict(&self, needed: u32, p: Option<f64>, margin: f64) -> Verdict {
        let cannot = |why| Verdict::CannotTell { why };
        if self.blocks == 0 {
            return cannot(CannotTell::NoValues);
        }
        if self.blocks < needed {
            return cannot(CannotTell::TooFewBlocks);
        }
        let (Some(interval), Some(narrower)) = (self.interval_95, self.interval_90) else {
            return self.verdict_of_difference(p);
        };
        if narrower.low >= 1.0 / (1.0 + margin) && narrower.high <= 1.0 + margin {
            return Verdict::Equivalent;
        }
        side(interval, 1.0, p)
    }

    /// Without a ratio no margin applies: equal values are equivalent, and any significant difference is a verdict.
    fn verdict_of_difference(&self, p: Option<f64>) -> Verdict {
        match self.difference {
            Some(_) if self.equal => Verdict::Equivalent,
            Some(interval) => side(interval, 0.0, p),
            None => Verdict::CannotTell { why: CannotTell::NoValues },
        }
    }
}

/// The side of `none` (no difference) on which the interval lies, if P is significant.
fn side(interval: Interval, none: f64, p: Option<f64>) -> Verdict {
    let significant = p.is_some_and(|p| p <= ALPHA);
    if significant && interval.high < none {
        Verdict::Less
    } else if significant && interval.low > none {
        Verdict::More
    } else {
        Verdict::CannotTell { why: CannotTell::TooNoisy }
    }
}

/// P value of the rank test of two cells: the signed-rank test for values in the same order of blocks, the rank-sum test without blocks.
/// `None` without values.
pub fn rank_test(design: Design, cell: &[f64], baseline: &[f64]) -> Option<f64> {
    match design {
        Design::Blocks => wilcoxon::signed_rank(&differences_of(cell, baseline)).map(|test| test.p),
        Design::Independent => rank_sum::rank_sum(cell, baseline).map(|test| test.p),
    }
}

/// The differences for the rank test: log ratios, because noise and effects multiply; plain differences if a value is not positive.
fn differences_of(cell: &[f64], baseline: &[f64]) -> Vec<f64> {
    let pairs = cell.iter().zip(baseline);
    if cell.iter().chain(baseline).all(|value| *value > 0.0) {
        pairs.map(|(a, b)| (a / b).ln()).collect()
    } else {
        pairs.map(|(a, b)| a - b).collect()
    }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
