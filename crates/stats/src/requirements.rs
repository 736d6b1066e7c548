//! The requirements of a study, judged.
//!
//! A run meets its requirements only if all tests show it, so each test has the full level (intersection-union test,
//! Berger 1982). It fails if one test shows the opposite, so these P values have Holm's correction. Between the two,
//! the requirement is inconclusive. `docs/statistics.md` has the methods.

use statrs::distribution::{Binomial, ContinuousCDF, DiscreteCDF, StudentsT};
use wirelab_model::metric::{Better, Value, Values};
use wirelab_model::outcome::Outcome;
use wirelab_model::plan::{Cell, Plan};
use wirelab_model::requirement::{Limit, Reference, Requirement};
use wirelab_model::study::Study;

use crate::analysis::{CannotTell, Interval, RequirementResult, RequirementVerdict, Requiring};
use crate::bootstrap::Bootstrap;
use crate::compare::{ALPHA, MIN_BLOCKS};
use crate::failures::{
    FAILURE_MARGIN, INFINITE, failure_share, is_bounded, is_bounded_interval, is_failure_of_cell, worst,
};
use crate::holm::holm;
use crate::quantile;
use crate::trials::Trials;
use crate::wilcoxon;

/// The metric whose value of a trial is a mean over requests, and of a cell the mean over its trials.
const FAILED_REQUESTS: &str = "error_share";

/// The results of every requirement, in the study's order.
pub fn requirements(
    study: &Study,
    plan: &Plan,
    trials: &Trials<'_>,
    bootstrap: &mut Bootstrap,
) -> Vec<RequirementResult> {
    let of_requirement = |one: &Requirement| tests(one, study, plan, trials, bootstrap);
    let evidence: Vec<Vec<Evidence>> = study.require.iter().map(of_requirement).collect();
    let against: Vec<f64> = evidence.iter().flatten().map(|test| test.p_against).collect();
    let mut corrected = holm(&against).into_iter();
    let mut result = |(requirement, tests): (&Requirement, Vec<Evidence>)| {
        let judge = |test: Evidence| test.judge(corrected.next().unwrap_or(1.0));
        let tests: Vec<Requiring> = tests.into_iter().map(judge).collect();
        RequirementResult {
            that: requirement.that.clone(),
            verdict: joint_verdict(&tests),
            tests,
            inconclusive: requirement.inconclusive,
        }
    };
    study.require.iter().zip(evidence).map(&mut result).collect()
}

/// Not met if one test says so, met if all do.
pub(crate) fn joint_verdict(tests: &[Requiring]) -> RequirementVerdict {
    let is_unclear = |verdict: &RequirementVerdict| matches!(verdict, RequirementVerdict::CannotTell { .. });
    let mut verdicts = tests.iter().map(|test| test.verdict);
    if verdicts.clone().any(|verdict| verdict == RequirementVerdict::NotMet) {
        return RequirementVerdict::NotMet;
    }
    let none = RequirementVerdict::CannotTell { why: CannotTell::NoValues };
    match tests {
        [] => none,
        _ => verdicts.find(is_unclear).unwrap_or(RequirementVerdict::Met),
    }
}

/// The evidence of a cell's trials on a requirement.
struct Evidence {
    shown: Requiring,
    /// P value of the hypothesis that the requirement is violated.
    p_for: f64,
    /// P value of the hypothesis that the requirement is kept, before the correction.
    p_against: f64,
    /// Reasons to withhold the verdict `met`, and the verdict `not met`.
    withheld: [Option<CannotTell>; 2],
    /// The bound, on the scale of the size.
    limit: Option<f64>,
}

impl Evidence {
    fn judge(self, p_against: f64) -> Requiring {
        let cannot = |why| RequirementVerdict::CannotTell { why };
        let [no_met, no_not_met] = self.withheld;
        let verdict = if self.shown.blocks == 0 {
            cannot(CannotTell::NoValues)
        } else if self.shown.blocks < MIN_BLOCKS {
            cannot(CannotTell::TooFewBlocks)
        } else if self.p_for <= ALPHA {
            no_met.map_or(RequirementVerdict::Met, cannot)
        } else if p_against <= ALPHA {
            no_not_met.map_or(RequirementVerdict::NotMet, cannot)
        } else if self.p_against <= ALPHA {
            cannot(CannotTell::Correction)
        } else {
            cannot(CannotTell::TooNoisy)
        };
        let is_noisy = verdict == cannot(CannotTell::TooNoisy);
        let blocks_to_decide = self.limit.filter(|_| is_noisy).and_then(|limit| blocks_to_decide(&self.shown, limit));
        Requiring { p_met: self.p_for, p_not_met: p_against, blocks_to_decide, verdict, ..self.shown }
    }
}

/// More blocks than this are no advice.
const MOST_BLOCKS: f64 = 2000.0;

/// The number of blocks after which the interval would no longer contain the limit, if the size stays: the width of an
/// interval shrinks with the square root of the number of blocks. On a logarithmic scale, because noise multiplies.
fn blocks_to_decide(test: &Requiring, limit: f64) -> Option<u32> {
    let (size, interval) = (test.size?, test.interval?);
    if !(size > 0.0 && interval.low > 0.0 && limit > 0.0) {
        return None;
    }
    let width = if size <= limit { (interval.high / size).ln() } else { (size / interval.low).ln() };
    let blocks = f64::from(test.blocks) * (width / (size / limit).ln()).powi(2);
    (blocks <= MOST_BLOCKS).then(|| (blocks.ceil() as u32).max(test.blocks + 1))
}

fn tests(
    requirement: &Requirement,
    study: &Study,
    plan: &Plan,
    trials: &Trials<'_>,
    bootstrap: &mut Bootstrap,
) -> Vec<Evidence> {
    let metric = requirement.that.metric.as_str();
    let is_meant = |(_, cell): &(usize, &Cell)| cell.twin_of.is_none() && requirement.cells.matches(cell);
    let cells: Vec<(usize, &Cell)> = plan.cells.iter().enumerate().filter(is_meant).collect();
    match &requirement.that.limit {
        limit @ (Limit::AtMost(_) | Limit::AtLeast(_)) => {
            let absolute = |(cell, _): (usize, &Cell)| match (metric, limit) {
                (FAILED_REQUESTS, Limit::AtMost(most)) => failed_requests(cell, most.value(), trials),
                _ => bounded(cell, metric, limit, trials),
            };
            cells.into_iter().map(absolute).collect()
        }
        Limit::NoWorse { by, than } => {
            let level = match than {
                Reference::Baseline => &study.compare.baseline,
                Reference::Level(level) => level,
            };
            let factor = &study.compare.factor;
            let relative = |(cell, own): (usize, &Cell)| {
                let reference = reference(plan, own, factor, level)?;
                Some(no_worse([cell, reference], metric, by.value(), plan, trials, bootstrap))
            };
            cells.into_iter().filter(|(_, cell)| cell.levels.get(factor) != Some(level)).filter_map(relative).collect()
        }
    }
}

/// The cell with another level of the factor, and otherwise the same levels.
fn reference(plan: &Plan, cell: &Cell, factor: &str, level: &String) -> Option<usize> {
    let is_reference = |other: &Cell| {
        other.twin_of.is_none()
            && other.levels.get(factor) == Some(level)
            && other.levels.iter().all(|(name, level)| name == factor || cell.levels.get(name) == Some(level))
    };
    plan.cells.iter().position(is_reference)
}

fn shown(cell: usize, baseline: Option<usize>, blocks: usize) -> Requiring {
    Requiring {
        cell,
        baseline,
        blocks: blocks as u32,
        size: None,
        interval: None,
        blocks_to_decide: None,
        p_met: 1.0,
        p_not_met: 1.0,
        verdict: RequirementVerdict::CannotTell { why: CannotTell::NoValues },
    }
}

/// The sign test of the median over trials against a bound. The interval is that of order statistics, with the same
/// level, so that `met` means: the interval keeps the bound.
fn bounded(cell: usize, metric: &str, limit: &Limit, trials: &Trials<'_>) -> Evidence {
    let observed: Vec<Option<f64>> = trials.observed(cell, metric).unwrap_or_default().into_values().collect();
    let n = observed.len();
    let is_kept = |value: &&Option<f64>| value.is_some_and(|value| limit.keeps(value) == Some(true));
    let kept = observed.iter().filter(is_kept).count();
    // A trial that failed is on the wrong side of every bound.
    let wrong = if matches!(limit, Limit::AtLeast(_)) { -INFINITE } else { INFINITE };
    let mut values: Vec<f64> = observed.iter().map(|value| value.unwrap_or(wrong)).collect();
    values.sort_by(f64::total_cmp);
    let size = quantile::median(&values).filter(|median| is_bounded(*median));
    Evidence {
        shown: Requiring { size, interval: order_interval(&values), ..shown(cell, None, n) },
        p_for: at_least_heads(kept, n),
        p_against: at_least_heads(n - kept, n),
        withheld: [None, None],
        limit: match limit {
            Limit::AtMost(bound) | Limit::AtLeast(bound) => Some(bound.value()),
            Limit::NoWorse { .. } => None,
        },
    }
}

/// The probability of at least so many heads among `n` throws of a fair coin.
fn at_least_heads(heads: usize, n: usize) -> f64 {
    match (heads, Binomial::new(0.5, n as u64)) {
        (0, _) | (_, Err(_)) => 1.0,
        (heads, Ok(coin)) => coin.sf(heads as u64 - 1),
    }
}

/// The interval of the median between two order statistics, with an error of at most 5 % on each side. `None` with too
/// few values, or where failures make an end infinite.
fn order_interval(sorted: &[f64]) -> Option<Interval> {
    let n = sorted.len();
    let least = (1..=n).find(|heads| at_least_heads(*heads, n) <= ALPHA)?;
    let interval = Interval { low: sorted[n - least], high: sorted[least - 1], confidence: 1.0 - 2.0 * ALPHA };
    is_bounded_interval(&interval).then_some(interval)
}

/// The mean share of failed requests against a bound. Two tests must agree: Student's over the shares of the trials,
/// and the binomial one over all requests, which matters where no request or almost none failed.
fn failed_requests(cell: usize, most: f64, trials: &Trials<'_>) -> Evidence {
    let counts: Vec<(f64, f64)> = trials
        .of_cell(cell)
        .filter_map(|record| match record.outcome {
            Outcome::Ok => failed_of(&record.values),
            _ => is_failure_of_cell(record).then_some((1.0, 1.0)),
        })
        .collect();
    let shares: Vec<f64> = counts.iter().map(|(failed, all)| failed / all).collect();
    let n = shares.len();
    if n < 2 {
        let shown = shown(cell, None, n);
        return Evidence { shown, p_for: 1.0, p_against: 1.0, withheld: [None, None], limit: None };
    }
    let (failed, all) = counts.iter().fold((0.0, 0.0), |(failed, all), trial| (failed + trial.0, all + trial.1));
    let mean = shares.iter().sum::<f64>() / n as f64;
    let deviation = (shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>() / (n as f64 - 1.0)).sqrt();
    let (below, above) = student((mean - most) / (deviation / (n as f64).sqrt()), n);
    let (few, many) = binomial(failed as u64, all as u64, most);
    Evidence {
        shown: Requiring { size: Some(mean), ..shown(cell, None, n) },
        p_for: below.max(few),
        p_against: above.max(many),
        withheld: [None, None],
        limit: None,
    }
}

/// Failed and all requests of a trial. A trial without a success counts as one failed request, because its values do
/// not have the number.
fn failed_of(values: &Values) -> Option<(f64, f64)> {
    let number = |metric| values.get(metric).and_then(Value::number);
    let (share, succeeded) = (number(FAILED_REQUESTS)?, number("requests")?);
    if share >= 1.0 || succeeded <= 0.0 {
        return Some((1.0, 1.0));
    }
    let all = (succeeded / (1.0 - share)).round();
    Some((all - succeeded, all))
}

/// P values of a small and of a large statistic, with Student's distribution for `n` values.
fn student(statistic: f64, n: usize) -> (f64, f64) {
    // Equal shares: no scatter. On the bound itself there is no evidence.
    if statistic.is_nan() {
        return (1.0, 1.0);
    }
    StudentsT::new(0.0, 1.0, n as f64 - 1.0).map_or((1.0, 1.0), |t| (t.cdf(statistic), t.sf(statistic)))
}

/// P values of few and of many failures among all requests, if each fails with the given probability.
fn binomial(failed: u64, all: u64, share: f64) -> (f64, f64) {
    let Ok(of_bound) = Binomial::new(share, all) else { return (1.0, 1.0) };
    (of_bound.cdf(failed), if failed == 0 { 1.0 } else { of_bound.sf(failed - 1) })
}

/// Two cells in the same blocks: the first is worse by at most a share. The signed-rank test and the interval of the
/// medians must agree.
fn no_worse(
    [cell, reference]: [usize; 2],
    metric: &str,
    by: f64,
    plan: &Plan,
    trials: &Trials<'_>,
    bootstrap: &mut Bootstrap,
) -> Evidence {
    let [own, others] = in_common_blocks([cell, reference], metric, trials);
    let better = trials.better(metric);
    // The requirement is kept if the first of both terms is not larger than the second.
    let terms = |own: f64, other: f64| match better {
        Better::Lower => (own, (1.0 + by) * other),
        Better::Higher => ((1.0 - by) * other, own),
    };
    let (low, high) = wilcoxon::one_sided(&excesses(&own, &others, terms)).unwrap_or((1.0, 1.0));
    let confidence = 1.0 - 2.0 * ALPHA;
    let excess = |medians: &[f64]| {
        let (first, second) = terms(medians[0], medians[1]);
        first - second
    };
    let excess = bootstrap.distribution(&[&own, &others], excess).map(|d| d.interval(confidence));
    let ratio = ratio_of(&own, &others).filter(|ratio| is_bounded(*ratio));
    let interval = ratio.and_then(|_| bootstrap.distribution(&[&own, &others], |m| m[0] / m[1]));
    let only_if = |agrees: bool, p: f64| if agrees { p } else { 1.0 };
    Evidence {
        shown: Requiring {
            size: ratio,
            interval: interval.map(|d| d.interval(confidence)).filter(is_bounded_interval),
            ..shown(cell, Some(reference), own.len())
        },
        p_for: only_if(excess.is_some_and(|excess| excess.high <= 0.0), low),
        p_against: only_if(excess.is_some_and(|excess| excess.low > 0.0), high),
        withheld: [fails_more(cell, reference, trials), like_noise(ratio, reference, metric, plan, trials)],
        limit: Some(match better {
            Better::Lower => 1.0 + by,
            Better::Higher => 1.0 - by,
        }),
    }
}

/// The values of two cells in their common blocks; a failure has the worst rank. Empty if the second never completed.
fn in_common_blocks(cells: [usize; 2], metric: &str, trials: &Trials<'_>) -> [Vec<f64>; 2] {
    let [Some(own), Some(others)] = cells.map(|cell| trials.observed(cell, metric)) else { return Default::default() };
    if others.values().all(Option::is_none) {
        return Default::default();
    }
    let worst = worst(trials.better(metric));
    let pairs = own.into_iter().filter_map(|(block, own)| Some((own, *others.get(&block)?)));
    let (own, others): (Vec<f64>, Vec<f64>) =
        pairs.map(|(own, other)| (own.unwrap_or(worst), other.unwrap_or(worst))).unzip();
    [own, others]
}

/// By how much each block exceeds the requirement: in logarithms, because noise and effects multiply; as plain
/// differences if a value is not positive.
fn excesses(own: &[f64], others: &[f64], terms: impl Fn(f64, f64) -> (f64, f64)) -> Vec<f64> {
    let terms = own.iter().zip(others).map(|(own, other)| terms(*own, *other));
    let terms: Vec<(f64, f64)> = terms.collect();
    if terms.iter().all(|(first, second)| *first > 0.0 && *second > 0.0) {
        terms.iter().map(|(first, second)| (first / second).ln()).collect()
    } else {
        terms.iter().map(|(first, second)| first - second).collect()
    }
}

fn ratio_of(own: &[f64], others: &[f64]) -> Option<f64> {
    let ratio = quantile::median(own)? / quantile::median(others)?;
    ratio.is_finite().then_some(ratio)
}

/// The remaining requests of a cell that fails more often are a selection, so nothing favourable follows from them.
fn fails_more(cell: usize, reference: usize, trials: &Trials<'_>) -> Option<CannotTell> {
    let [own, others] = [cell, reference].map(|cell| failure_share(trials, cell));
    (own? > others? + FAILURE_MARGIN).then_some(CannotTell::UnequalFailures)
}

/// A difference that the A/A pair of the reference has, too, is no evidence against a cell.
fn like_noise(
    ratio: Option<f64>,
    reference: usize,
    metric: &str,
    plan: &Plan,
    trials: &Trials<'_>,
) -> Option<CannotTell> {
    let twin = plan.cells.iter().position(|cell| cell.twin_of == Some(reference))?;
    let values = trials.paired(&[twin, reference], metric);
    let noise = ratio_of(&values[0], &values[1])?;
    (ratio?.ln().abs() <= noise.ln().abs()).then_some(CannotTell::NoiseFloor)
}

#[cfg(test)]
#[path = "requirements_tests.rs"]
mod tests;
