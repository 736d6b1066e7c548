//! The effects of a claim's test: cells, sizes and intervals.

use std::collections::BTreeSet;

use indexmap::{IndexMap, IndexSet};
use wirelab_model::claim::{Bound, Test};
use wirelab_model::plan::{Cell, Plan};
use wirelab_model::selector::Selector;

use crate::analysis::{ClaimVerdict, Effect, Interval};
use crate::bootstrap::{Bootstrap, Distribution};
use crate::compare::MIN_BLOCKS;
use crate::correlation::spearman;
use crate::failures::{is_bounded, is_bounded_interval};
use crate::quantile;
use crate::trials::Trials;

/// The cells of one effect, and the levels of the open factors.
pub struct Resolved {
    at: String,
    cells: Vec<usize>,
}

impl Resolved {
    /// The numbers of its cells in the plan.
    pub fn cells(&self) -> impl Iterator<Item = usize> {
        self.cells.iter().copied()
    }
}

/// An effect with its bootstrap distribution, so that it can be judged at any confidence.
pub struct Measured {
    /// The effect with its 95 % interval.
    pub effect: Effect,
    /// `None` without an interval.
    distribution: Option<Distribution>,
    /// Whether the blocks suffice for a verdict.
    enough: bool,
    /// Cells that a correlation omits, because they have too few values.
    omitted: Option<Selector>,
}

impl Measured {
    /// Whether the interval of this confidence keeps the bound.
    pub fn verdict(&self, confidence: f64) -> ClaimVerdict {
        let distribution = self.distribution.as_ref().filter(|_| self.enough);
        distribution.map_or(ClaimVerdict::CannotTell, |d| keeps(d.interval(confidence), self.effect.expect))
    }

    /// The omitted cells of a correlation, in a sentence.
    pub fn omission(&self) -> Option<String> {
        let at = if self.effect.at.is_empty() { String::new() } else { format!(" at {}", self.effect.at) };
        let with = self.effect.with.as_ref()?;
        let omitted = self.omitted.as_ref()?;
        Some(format!(
            "The correlation of {} with {with}{at} omits {omitted}: too few trials have values.",
            self.effect.metric
        ))
    }
}

/// The cells of each effect of a test.
///
/// A factor is open if neither a selector nor `where` fixes it; a list of several levels in `where` narrows a factor
/// and leaves it open. A combination of open levels gives no effect if a selector matches no cell or several, or a
/// correlation too few.
pub fn resolve(test: &Test, plan: &Plan) -> Vec<Resolved> {
    let candidates: Vec<(usize, &Cell)> =
        plan.cells.iter().enumerate().filter(|(_, cell)| cell.twin_of.is_none() && test.given.matches(cell)).collect();
    let is_open = |factor: &str| {
        let narrowed = matches!(test.given.0.get(factor), Some(serde_json::Value::Array(any)) if any.len() > 1);
        let fixed = test.given.0.contains_key(factor) && !narrowed;
        !fixed && test.of.iter().all(|selector| !selector.0.contains_key(factor))
    };
    let open_levels = |cell: &Cell| -> IndexMap<String, String> {
        cell.levels.iter().filter(|(factor, _)| is_open(factor)).map(|(f, l)| (f.clone(), l.clone())).collect()
    };
    let mut combinations: Vec<IndexMap<String, String>> = Vec::new();
    for (_, cell) in &candidates {
        let levels = open_levels(cell);
        if !combinations.contains(&levels) {
            combinations.push(levels);
        }
    }
    let matching = |selector: &Selector, levels: &IndexMap<String, String>| -> Vec<usize> {
        let matching = candidates.iter().filter(|(_, cell)| selector.matches(cell) && open_levels(cell) == *levels);
        matching.map(|(number, _)| *number).collect()
    };
    let fits =
        |cells: &Vec<usize>| if test.with.is_some() { cells.len() >= Test::LEAST_CELLS } else { cells.len() == 1 };
    let resolved = combinations.into_iter().filter_map(|levels| {
        let cells: Option<Vec<Vec<usize>>> =
            test.of.iter().map(|selector| Some(matching(selector, &levels)).filter(fits)).collect();
        let at: Vec<_> = levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        let cells = cells?.concat();
        (!cells.is_empty()).then(|| Resolved { at: at.join(" "), cells })
    });
    resolved.collect()
}

/// The effect, from the trials of its cells.
pub fn measure(
    test: &Test,
    resolved: &Resolved,
    plan: &Plan,
    trials: &Trials<'_>,
    bootstrap: &mut Bootstrap,
) -> Measured {
    let Resolved { at, cells } = resolved;
    let found = match &test.with {
        Some(with) => correlation([&test.metric, with], cells, trials, bootstrap),
        None => quotient(&test.metric, cells, trials, bootstrap),
    };
    let named = |cells: &[usize]| -> Selector {
        let levels = |factor: &String| -> Vec<String> {
            let levels: IndexSet<&String> = cells.iter().map(|cell| &plan.cells[*cell].levels[factor]).collect();
            levels.into_iter().cloned().collect()
        };
        let factors = test.of.iter().flat_map(|selector| selector.0.keys());
        factors.fold(Selector::default(), |all, factor| all.and(factor, &levels(factor)))
    };
    let interval =
        found.distribution.as_ref().map(|distribution| distribution.interval(0.95)).filter(is_bounded_interval);
    let mut measured = Measured {
        effect: Effect {
            at: at.clone(),
            of: if test.with.is_some() { named(&found.takes_part).to_string() } else { of(&test.of) },
            metric: test.metric.clone(),
            with: test.with.clone(),
            size: found.size.filter(|size| is_bounded(*size)),
            plain: test.with.is_none() && cells.len() == 1,
            interval,
            expect: test.expect,
            verdict: ClaimVerdict::CannotTell,
        },
        distribution: found.distribution,
        enough: found.enough,
        omitted: (!found.omitted.is_empty()).then(|| named(&found.omitted)),
    };
    measured.effect.verdict = measured.verdict(0.95);
    measured
}

/// The measurement of an effect.
struct Found {
    size: Option<f64>,
    distribution: Option<Distribution>,
    enough: bool,
    takes_part: Vec<usize>,
    omitted: Vec<usize>,
}

fn quotient(metric: &str, cells: &[usize], trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Found {
    let values = trials.paired(cells, metric);
    let lists: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let medians: Option<Vec<f64>> = lists.iter().map(|list| quantile::median(list)).collect();
    let size = medians.map(|medians| product(&medians)).filter(|size| size.is_finite());
    Found {
        size,
        distribution: size.and_then(|_| bootstrap.under(trials.design(), &lists, product)),
        enough: lists.iter().all(|list| list.len() >= MIN_BLOCKS as usize),
        takes_part: cells.to_vec(),
        omitted: Vec::new(),
    }
}

/// a; a/b; (a/b)/(c/d): the second and the third median divide.
fn product(medians: &[f64]) -> f64 {
    medians
        .iter()
        .enumerate()
        .map(|(place, median)| if matches!(place, 1 | 2) { 1.0 / median } else { *median })
        .product()
}

/// The rank correlation of the medians of two metrics over cells. A cell takes part if it has values of both metrics in
/// at least half of the blocks in which any cell has some. A cell that fails often thus does not restrict the blocks of
/// all others.
fn correlation(metrics: [&String; 2], cells: &[usize], trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Found {
    let of = |metric: &String| cells.iter().map(|cell| trials.in_blocks(*cell, metric)).collect::<Vec<_>>();
    let [first, second] = metrics.map(of);
    let blocks: BTreeSet<u32> = first.iter().chain(&second).flatten().map(|(block, _)| *block).collect();
    let has_enough = |place: &usize| [&first, &second].iter().all(|of| 2 * of[*place].len() >= blocks.len().max(1));
    let (takes_part, omitted): (Vec<usize>, Vec<usize>) = (0..cells.len()).partition(has_enough);
    let n = takes_part.len();
    let number = |block: u32| blocks.range(..block).count();
    let numbered = |values: &[(u32, f64)]| values.iter().map(|(block, value)| (number(*block), *value)).collect();
    let lists: Vec<Vec<(usize, f64)>> =
        [&first, &second].iter().flat_map(|of| takes_part.iter().map(|place| numbered(&of[*place]))).collect();
    let median = |list: &Vec<(usize, f64)>| quantile::median(&list.iter().map(|(_, value)| *value).collect::<Vec<_>>());
    let medians: Option<Vec<f64>> = lists.iter().map(median).collect();
    let size = medians.filter(|_| n >= Test::LEAST_CELLS).and_then(|medians| rank_correlation(&medians));
    let mut resampled = Vec::new();
    if size.is_some() {
        bootstrap
            .medians(blocks.len(), &lists, |medians| resampled.push(rank_correlation(medians).unwrap_or(f64::NAN)));
    }
    let number_of = |places: Vec<usize>| places.into_iter().map(|place| cells[place]).collect();
    Found {
        size,
        distribution: Distribution::of(resampled),
        enough: lists.iter().all(|list| list.len() >= MIN_BLOCKS as usize),
        takes_part: number_of(takes_part),
        omitted: number_of(omitted),
    }
}

/// The rank correlation of the first half of the medians with the second half. A cell without a block in the resample
/// is skipped.
fn rank_correlation(medians: &[f64]) -> Option<f64> {
    let (first, second) = medians.split_at(medians.len() / 2);
    let pairs = first.iter().zip(second).filter(|(a, b)| a.is_finite() && b.is_finite());
    let (first, second): (Vec<f64>, Vec<f64>) = pairs.unzip();
    spearman(&first, &second)
}

/// Whether an interval keeps a bound as a whole, or violates it as a whole.
fn keeps(interval: Interval, bound: Bound) -> ClaimVerdict {
    let Interval { low, high, .. } = interval;
    let (holds, violated) = match bound {
        Bound::Above(bound) => (low > bound.value(), high <= bound.value()),
        Bound::Below(bound) => (high < bound.value(), low >= bound.value()),
        Bound::Within(from, to) => {
            let (from, to) = (from.value(), to.value());
            (low >= from && high <= to, high < from || low > to)
        }
    };
    match (holds, violated) {
        (true, _) => ClaimVerdict::Holds,
        (_, true) => ClaimVerdict::DoesNotHold,
        _ => ClaimVerdict::CannotTell,
    }
}

/// The quotient of a test, in words.
pub fn of(of: &[Selector]) -> String {
    match of {
        [a, b, c, d] => format!("({a} / {b}) / ({c} / {d})"),
        some => some.iter().map(Selector::to_string).collect::<Vec<_>>().join(" / "),
    }
}

/// The metrics of a test.
pub fn metrics(test: &Test) -> String {
    test.with.iter().fold(test.metric.clone(), |all, with| format!("{all} and {with}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_keeps_or_violates_a_bound_only_as_a_whole() {
        use ClaimVerdict::{CannotTell, DoesNotHold, Holds};
        for (low, high, bound, expected) in [
            (1.1, 1.2, "> 1", Holds),
            (0.9, 1.0, "> 1", DoesNotHold),
            (0.9, 1.1, "> 1", CannotTell),
            (0.0, 0.0, "< 0.01", Holds),
            (0.0, 0.0, "> 0", DoesNotHold),
            (0.1, 0.2, "< 0.1", DoesNotHold),
            (3.0, 12.0, "3 to 12", Holds),
            (2.9, 4.0, "3 to 12", CannotTell),
            (13.0, 14.0, "3 to 12", DoesNotHold),
        ] {
            let interval = Interval { low, high, confidence: 0.95 };
            assert_eq!(keeps(interval, bound.parse().unwrap()), expected, "{low} to {high}, {bound}");
        }
    }
}
