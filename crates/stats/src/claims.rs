//! The claims of a study, tested.

use indexmap::IndexMap;
use wirelab_model::claim::{Bound, Claim, Test};
use wirelab_model::plan::{Cell, Plan};
use wirelab_model::selector::Selector;
use wirelab_model::study::Study;

use crate::analysis::{ClaimResult, ClaimVerdict, Effect, Interval};
use crate::bootstrap::Bootstrap;
use crate::compare::MIN_BLOCKS;
use crate::quantile;
use crate::trials::Trials;

/// The results of every claim, in the study's order.
pub fn claims(study: &Study, plan: &Plan, trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Vec<ClaimResult> {
    study.claims.iter().map(|one| claim(one, plan, trials, bootstrap)).collect()
}

fn claim(claim: &Claim, plan: &Plan, trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> ClaimResult {
    let mut untested: Vec<String> = claim.untested.iter().cloned().collect();
    let mut effects = Vec::new();
    for test in &claim.tests {
        let resolved = resolve(test, plan);
        if resolved.is_empty() {
            let (metric, given) = (&test.metric, with(&test.given));
            untested.push(format!("This plan has no cells for {} in {metric}{given}.", ratio(&test.of)));
        }
        effects.extend(resolved.into_iter().map(|(at, cells)| effect(test, at, &cells, trials, bootstrap)));
    }
    ClaimResult {
        id: claim.id.clone(),
        text: claim.text.clone(),
        verdict: together(&effects),
        effects,
        untested: (!untested.is_empty()).then(|| untested.join(" ")),
    }
}

/// All hold: the claim holds. One does not: nor does the claim.
fn together(effects: &[Effect]) -> ClaimVerdict {
    let any = |verdict| effects.iter().any(|effect| effect.verdict == verdict);
    if effects.is_empty() {
        ClaimVerdict::NotTested
    } else if any(ClaimVerdict::DoesNotHold) {
        ClaimVerdict::DoesNotHold
    } else if any(ClaimVerdict::CannotTell) {
        ClaimVerdict::CannotTell
    } else {
        ClaimVerdict::Holds
    }
}

/// The cells of each effect that a test asks for, and at which levels of the open factors.
///
/// A factor is open if neither a selector nor `where` fixes it; a list of several levels in `where` narrows a factor and leaves it
/// open. A combination of open levels in which a selector has not exactly one cell gives no effect.
fn resolve(test: &Test, plan: &Plan) -> Vec<(String, Vec<usize>)> {
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
    let only_cell = |selector: &Selector, levels: &IndexMap<String, String>| {
        let mut matching = candidates.iter().filter(|(_, cell)| selector.matches(cell) && open_levels(cell) == *levels);
        match (matching.next(), matching.next()) {
            (Some((cell, _)), None) => Some(*cell),
            _ => None,
        }
    };
    let resolved = combinations.into_iter().filter_map(|levels| {
        let cells: Option<Vec<usize>> = test.of.iter().map(|selector| only_cell(selector, &levels)).collect();
        let at: Vec<_> = levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        cells.filter(|cells| !cells.is_empty()).map(|cells| (at.join(" "), cells))
    });
    resolved.collect()
}

fn effect(test: &Test, at: String, cells: &[usize], trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Effect {
    let values = trials.paired(cells, &test.metric);
    let lists: Vec<&[f64]> = values.iter().map(Vec::as_slice).collect();
    let medians: Option<Vec<f64>> = lists.iter().map(|list| quantile::median(list)).collect();
    let size = medians.map(|medians| product(&medians)).filter(|size| size.is_finite());
    let interval = size.and_then(|_| bootstrap.under(trials.design(), &lists, product)).map(|d| d.interval(0.95));
    let enough = lists.iter().all(|list| list.len() >= MIN_BLOCKS as usize);
    Effect {
        at,
        of: ratio(&test.of),
        metric: test.metric.clone(),
        size,
        plain: cells.len() == 1,
        interval,
        expect: test.expect,
        verdict: interval.filter(|_| enough).map_or(ClaimVerdict::CannotTell, |interval| keeps(interval, test.expect)),
    }
}

/// a; a/b; (a/b)/(c/d): the second and third go below the line.
fn product(medians: &[f64]) -> f64 {
    medians
        .iter()
        .enumerate()
        .map(|(place, median)| if matches!(place, 1 | 2) { 1.0 / median } else { *median })
        .product()
}

/// Whether an interval keeps a bound as a whole, or violates it as a whole.
fn keeps(interval: Interval, bound: Bound) -> ClaimVerdict {
    let Interval { low, high, .. } = interval;
    let (holds, violated) = match bound {
        Bound::Above(bound) => (low > bound, high <= bound),
        Bound::Below(bound) => (high < bound, low >= bound),
        Bound::Within(from, to) => (low >= from && high <= to, high < from || low > to),
    };
    match (holds, violated) {
        (true, _) => ClaimVerdict::Holds,
        (_, true) => ClaimVerdict::DoesNotHold,
        _ => ClaimVerdict::CannotTell,
    }
}

/// What is divided by what, in words.
fn ratio(of: &[Selector]) -> String {
    match of {
        [a, b, c, d] => format!("({a} / {b}) / ({c} / {d})"),
        some => some.iter().map(Selector::to_string).collect::<Vec<_>>().join(" / "),
    }
}

fn with(given: &Selector) -> String {
    if given.0.is_empty() { String::new() } else { format!(" where {given}") }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
