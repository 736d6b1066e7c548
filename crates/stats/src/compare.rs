//! Cells compared with their baselines.

use wirelab_model::plan::{Comparison, Plan};
use wirelab_model::study::Study;
use wirelab_model::table::Design;

use crate::analysis::{CannotTell, Compared, Interval, Moment, Verdict};
use crate::anytime;
use crate::bootstrap::Bootstrap;
use crate::brunner_munzel::{brunner_munzel, smallest_p};
use crate::failures::{INFINITE, is_bounded, is_bounded_interval, withhold};
use crate::family;
use crate::quantile;
use crate::trials::Trials;
use crate::wilcoxon;

/// The smallest number of blocks for a verdict.
pub const MIN_BLOCKS: u32 = 10;

/// The level of tests.
pub const ALPHA: f64 = 0.05;

/// Blocks that a verdict needs if `family` comparisons share Holm's correction at a level: at least [`MIN_BLOCKS`], and
/// enough for significance of the smallest P value of the rank test with n blocks, 2 / 2^n.
#[must_use]
pub fn blocks_needed(family: usize, alpha: f64) -> u32 {
    let floor = (2.0 * family as f64 / alpha).log2().ceil();
    MIN_BLOCKS.max(floor as u32)
}

/// The same for a design. Without blocks it is the number of observations of each cell: with n observations each, the
/// smallest P value is 2 divided by the number of ways to choose n of 2n.
#[must_use]
pub fn needed(design: Design, family: usize, alpha: f64) -> u32 {
    if design == Design::Blocks {
        return blocks_needed(family, alpha);
    }
    (MIN_BLOCKS..).find(|n| family as f64 * smallest_p(*n as usize, *n as usize) <= alpha).unwrap_or(u32::MAX)
}

/// Every comparison of the plan in every compared metric, metric by metric.
pub fn compare(
    study: &Study,
    plan: &Plan,
    trials: &Trials<'_>,
    moment: Moment,
    bootstrap: &mut Bootstrap,
) -> Vec<Compared> {
    let effects: Vec<Vec<PairedEffect>> =
        study.compare.metrics.iter().map(|metric| effects(metric, plan, trials, moment, bootstrap)).collect();
    let p: Vec<Vec<f64>> = effects.iter().map(|effects| hypotheses(&plan.comparisons, effects)).collect();
    let corrected = family::correct(&study.compare, &p);
    let of_metric = |((metric, effects), corrected): ((&String, Vec<PairedEffect>), Vec<f64>)| {
        judge(metric, (study, plan, trials), moment, effects, corrected)
    };
    study.compare.metrics.iter().zip(effects).zip(corrected).flat_map(of_metric).collect()
}

fn effects(
    metric: &str,
    plan: &Plan,
    trials: &Trials<'_>,
    moment: Moment,
    bootstrap: &mut Bootstrap,
) -> Vec<PairedEffect> {
    let effect = |comparison: &Comparison| {
        let values = trials.paired(&[comparison.cell, comparison.baseline], metric);
        let effect = PairedEffect::under(trials.design(), &values[0], &values[1], bootstrap);
        if moment == Moment::Underway { effect.at_any_time(&values[0], &values[1]) } else { effect }
    };
    plan.comparisons.iter().map(effect).collect()
}

/// The P values of the comparisons, without A/A pairs, in their order.
fn hypotheses(comparisons: &[Comparison], effects: &[PairedEffect]) -> Vec<f64> {
    let family = comparisons.iter().zip(effects).filter(|(comparison, _)| !comparison.aa);
    family.filter_map(|(_, effect)| effect.p).collect()
}

/// The comparisons of one metric, from their effects and the corrected P values of the hypotheses.
fn judge(
    metric: &str,
    (study, plan, trials): (&Study, &Plan, &Trials<'_>),
    moment: Moment,
    effects: Vec<PairedEffect>,
    corrected: Vec<f64>,
) -> Vec<Compared> {
    let mut corrected = corrected.into_iter();
    let aa_pairs = plan.comparisons.iter().filter(|comparison| comparison.aa).count();
    let family = family::size(&study.compare, metric, plan.comparisons.len() - aa_pairs);
    let alpha = moment.alpha();
    let needed = match moment {
        Moment::Underway => anytime::blocks_needed(family),
        Moment::Ended | Moment::Complete => needed(trials.design(), family, alpha),
    };
    let rule = Rule { needed, alpha, margin: study.compare.margin.0, noise: None };
    let floors: Vec<_> = plan
        .comparisons
        .iter()
        .zip(&effects)
        .filter(|(comparison, _)| comparison.aa)
        .map(|(comparison, effect)| (comparison.baseline, effect.shown_noise(), effect.shown_ratio()))
        .collect();
    let compared = plan.comparisons.iter().zip(effects).map(|(comparison, effect)| {
        let p_holm = if comparison.aa || effect.p.is_none() { None } else { corrected.next() };
        // An A/A pair is no hypothesis of the study. Bonferroni's correction over the pairs bounds their false alarms.
        let p = if comparison.aa { effect.p.map(|p| (p * aa_pairs as f64).min(1.0)) } else { p_holm };
        let floor = floors.iter().find(|(baseline, ..)| *baseline == comparison.baseline && !comparison.aa);
        let (noise_floor, noise) = floor.map_or((None, None), |(_, interval, ratio)| (*interval, *ratio));
        let needed = if comparison.aa { MIN_BLOCKS } else { rule.needed };
        let verdict = effect.verdict(p, &Rule { needed, noise, ..rule });
        Compared {
            cell: comparison.cell,
            baseline: comparison.baseline,
            aa: comparison.aa,
            metric: metric.to_owned(),
            exploratory: !study.compare.is_primary(metric),
            blocks: effect.blocks,
            blocks_needed: needed,
            ratio: effect.shown_ratio(),
            interval: effect.shown_interval(),
            p: effect.p,
            p_holm,
            noise_floor,
            verdict: withhold(verdict, [comparison.cell, comparison.baseline], metric, trials),
        }
    });
    compared.collect()
}

/// The conditions of a verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rule {
    /// The smallest number of blocks, or of observations of each cell.
    pub needed: u32,
    /// The level of the test.
    pub alpha: f64,
    /// Ratios within 1/(1+margin) to 1+margin are equivalent.
    pub margin: f64,
    /// The ratio of the A/A pair. A ratio no farther from 1 is no difference.
    pub noise: Option<f64>,
}

impl Rule {
    /// The usual rule: level [`ALPHA`], no A/A pair.
    #[must_use]
    pub const fn plain(needed: u32, margin: f64) -> Self {
        Self { needed, alpha: ALPHA, margin, noise: None }
    }
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
    /// The 90 % interval of the ratio. Its position within the margin equals two one-sided tests at 5 % (Schuirmann
    /// 1987).
    pub interval_90: Option<Interval>,
    /// The 95 % bootstrap interval of the ratio, whatever the moment: the noise floor, if this is an A/A pair.
    pub noise: Option<Interval>,
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
            noise: ratios.as_ref().map(|d| d.interval(0.95)),
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

    /// The interval that serves as a noise floor, if this is an A/A pair.
    fn shown_noise(&self) -> Option<Interval> {
        self.noise.filter(is_bounded_interval)
    }

    /// The same effect, with the test and the interval that hold at any time ([`anytime`]). Its interval is that of the
    /// median of the blocks' ratios.
    fn at_any_time(self, cell: &[f64], baseline: &[f64]) -> Self {
        // Values of 0: equal values have the ratio 1, and a ratio to 0 is the largest of all.
        let ratio = |(a, b): (&f64, &f64)| if a == b { 1.0 } else { (a / b).min(INFINITE) };
        let by_block: Vec<f64> = cell.iter().zip(baseline).map(ratio).collect();
        let interval = anytime::interval(&by_block);
        Self { interval_95: interval, interval_90: interval, p: anytime::p(cell, baseline), ..self }
    }

    /// The verdict. `p` is the P value after correction.
    ///
    /// Equivalent: the 90 % interval lies within 1/(1+margin) to 1+margin. Otherwise less or more: P is significant,
    /// the 95 % interval lies on one side of 1, and the A/A pair differs by less. A significant difference within the
    /// margin is thus equivalent, and no verdict rests on the P value or on the interval alone.
    #[must_use]
    pub fn verdict(&self, p: Option<f64>, rule: &Rule) -> Verdict {
        let cannot = |why| Verdict::CannotTell { why };
        if self.blocks == 0 {
            return cannot(CannotTell::NoValues);
        }
        if self.blocks < rule.needed {
            return cannot(CannotTell::TooFewBlocks);
        }
        let (Some(interval), Some(narrower)) = (self.interval_95, self.interval_90) else {
            return self.verdict_of_difference(p, rule);
        };
        if narrower.low >= 1.0 / (1.0 + rule.margin) && narrower.high <= 1.0 + rule.margin {
            return Verdict::Equivalent;
        }
        let is_noise = |ratio: f64| rule.noise.is_some_and(|noise| ratio.ln().abs() <= noise.ln().abs());
        match self.side(interval, 1.0, p, rule.alpha) {
            Verdict::Less | Verdict::More if self.ratio.is_some_and(is_noise) => cannot(CannotTell::NoiseFloor),
            verdict => verdict,
        }
    }

    /// Without a ratio no margin applies: equal values are equivalent, and any significant difference is a verdict.
    fn verdict_of_difference(&self, p: Option<f64>, rule: &Rule) -> Verdict {
        match self.difference {
            Some(_) if self.equal => Verdict::Equivalent,
            Some(interval) => self.side(interval, 0.0, p, rule.alpha),
            None => Verdict::CannotTell { why: CannotTell::NoValues },
        }
    }

    /// The side of `none` (no difference) on which the interval lies, if P is significant.
    fn side(&self, interval: Interval, none: f64, p: Option<f64>, alpha: f64) -> Verdict {
        let is_significant = |p: Option<f64>| p.is_some_and(|p| p <= alpha);
        match (interval.high < none, interval.low > none) {
            (true, _) if is_significant(p) => Verdict::Less,
            (_, true) if is_significant(p) => Verdict::More,
            (true, _) | (_, true) if is_significant(self.p) => Verdict::CannotTell { why: CannotTell::Correction },
            _ => Verdict::CannotTell { why: CannotTell::TooNoisy },
        }
    }
}

/// P value of the rank test of two cells: the signed-rank test for values in the same order of blocks, the test of
/// Brunner and Munzel without blocks. `None` without values.
pub fn rank_test(design: Design, cell: &[f64], baseline: &[f64]) -> Option<f64> {
    match design {
        Design::Blocks => wilcoxon::signed_rank(&differences_of(cell, baseline)).map(|test| test.p),
        Design::Independent => brunner_munzel(cell, baseline).map(|test| test.p),
    }
}

/// The differences for the rank test: log ratios, because noise and effects multiply; plain differences if a value is
/// not positive.
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
