//! The best level of the compared factor under each combination of the other factors.
//!
//! The data choose the best of several levels, and a level chosen for its result looks better than it is (the winner's
//! curse). Every pair of levels under every combination is therefore tested, with Holm's correction over all of these
//! pairs in all primary metrics. The probability of any false "better than" in them stays at 5 %. This is the
//! all-pairwise form of comparisons with the best (Hsu 1996, "Multiple comparisons: theory and methods", chapters 4 and
//! 5).

use indexmap::IndexMap;
use wirelab_model::metric::Better;
use wirelab_model::plan::Plan;
use wirelab_model::study::Study;

use crate::analysis::{CannotTell, Contest, ContestOutcome, Rival, Standing, Verdict};
use crate::bootstrap::Bootstrap;
use crate::compare::{ALPHA, PairedEffect, Rule, needed, rank_test};
use crate::failures::withhold;
use crate::family;
use crate::quantile;
use crate::trials::Trials;

/// The contests of every compared metric, metric by metric, in the order of the study.
pub fn contests(study: &Study, plan: &Plan, trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Vec<Contest> {
    let fields = fields(study, plan);
    let metrics = &study.compare.metrics;
    let tests: Vec<Vec<Test>> = metrics.iter().map(|metric| all_tests(metric, &fields, trials)).collect();
    let p: Vec<Vec<f64>> = tests.iter().map(|tests| tests.iter().map(|test| test.p).collect()).collect();
    let corrected = family::correct(&study.compare, &p);
    let in_metric = |((metric, tests), corrected): ((&String, Vec<Test>), Vec<f64>)| {
        contests_in(metric, study, &fields, (&tests, &corrected), trials, bootstrap)
    };
    metrics.iter().zip(tests).zip(corrected).flat_map(in_metric).collect()
}

fn all_tests(metric: &str, fields: &[Field], trials: &Trials<'_>) -> Vec<Test> {
    fields.iter().flat_map(|field| tests(field, metric, trials)).collect()
}

const fn pairs_of(cells: usize) -> usize {
    cells * cells.saturating_sub(1) / 2
}

/// Cells that differ only in the compared factor.
struct Field {
    levels: IndexMap<String, String>,
    cells: Vec<usize>,
}

/// The fields with at least two cells. A/A twins do not compete.
fn fields(study: &Study, plan: &Plan) -> Vec<Field> {
    let mut fields: Vec<Field> = Vec::new();
    for (number, cell) in plan.cells.iter().enumerate().filter(|(_, cell)| cell.twin_of.is_none()) {
        let mut levels = cell.levels.clone();
        if levels.shift_remove(&study.compare.factor).is_none() {
            continue;
        }
        match fields.iter_mut().find(|field| field.levels == levels) {
            Some(field) => field.cells.push(number),
            None => fields.push(Field { levels, cells: vec![number] }),
        }
    }
    fields.retain(|field| field.cells.len() > 1);
    fields
}

fn contests_in(
    metric: &str,
    study: &Study,
    fields: &[Field],
    (tests, corrected): (&[Test], &[f64]),
    trials: &Trials<'_>,
    bootstrap: &mut Bootstrap,
) -> Vec<Contest> {
    let better = trials.better(metric);
    let pairs = fields.iter().map(|field| pairs_of(field.cells.len())).sum();
    let needed = needed(trials.design(), family::size(&study.compare, metric, pairs), ALPHA);
    let rule = Rule::plain(needed, study.compare.margin.0);
    let p_of = |a: usize, b: usize| {
        let place = tests.iter().position(|test| test.cells == (a.min(b), a.max(b)))?;
        Some((tests[place].p, corrected[place]))
    };
    let contest = |field: &Field| {
        let ranking = ranking(field, metric, better, trials);
        let leader = ranking.first().filter(|(_, median)| median.is_some()).map(|(cell, _)| *cell);
        let rivals: Vec<_> = ranking
            .iter()
            .skip(usize::from(leader.is_some()))
            .map(|(cell, median)| {
                let (Some(leader), Some(_)) = (leader, median) else { return absent(*cell) };
                let values = trials.paired(&[leader, *cell], metric);
                let effect = PairedEffect::under(trials.design(), &values[0], &values[1], bootstrap);
                let (p, p_holm) = p_of(leader, *cell).unzip();
                let verdict = withhold(effect.verdict(p_holm, &rule), [leader, *cell], metric, trials);
                Rival {
                    cell: *cell,
                    blocks: effect.blocks,
                    ratio: effect.shown_ratio(),
                    interval: effect.shown_interval(),
                    p,
                    p_holm,
                    verdict,
                    standing: standing(verdict, better),
                }
            })
            .collect();
        Contest {
            metric: metric.to_owned(),
            levels: field.levels.clone(),
            leader,
            outcome: outcome(&rivals),
            rivals,
            blocks_needed: needed,
        }
    };
    fields.iter().map(contest).collect()
}

/// The rank test of two cells, the lower number first.
struct Test {
    cells: (usize, usize),
    p: f64,
}

fn tests(field: &Field, metric: &str, trials: &Trials<'_>) -> Vec<Test> {
    let mut tests = Vec::new();
    for (place, &a) in field.cells.iter().enumerate() {
        for &b in &field.cells[place + 1..] {
            let values = trials.paired(&[a, b], metric);
            if let Some(p) = rank_test(trials.design(), &values[0], &values[1]) {
                tests.push(Test { cells: (a.min(b), a.max(b)), p });
            }
        }
    }
    tests
}

/// The cells with their medians, the best first, cells without values last; ties in the order of the plan.
fn ranking(field: &Field, metric: &str, better: Better, trials: &Trials<'_>) -> Vec<(usize, Option<f64>)> {
    let median = |cell: usize| quantile::median(&trials.ranks(cell, metric).into_values().collect::<Vec<_>>());
    let mut ranking: Vec<_> = field.cells.iter().map(|cell| (*cell, median(*cell))).collect();
    ranking.sort_by(|(_, a), (_, b)| match (a, b) {
        (Some(a), Some(b)) if better == Better::Higher => b.total_cmp(a),
        (Some(a), Some(b)) => a.total_cmp(b),
        (a, b) => a.is_none().cmp(&b.is_none()),
    });
    ranking
}

const fn absent(cell: usize) -> Rival {
    let verdict = Verdict::CannotTell { why: CannotTell::NoValues };
    Rival { cell, blocks: 0, ratio: None, interval: None, p: None, p_holm: None, verdict, standing: Standing::Absent }
}

/// The standing of a rival with values, by the verdict on the leader's value against its own.
pub(crate) const fn standing(verdict: Verdict, better: Better) -> Standing {
    match (verdict, better) {
        (Verdict::Less, Better::Lower) | (Verdict::More, Better::Higher) => Standing::Beaten,
        (Verdict::Equivalent, _) => Standing::Tied,
        // Less or more against the leader: its median is better, but its values are worse in the common blocks.
        (Verdict::Less | Verdict::More | Verdict::CannotTell { .. }, _) => Standing::Open,
    }
}

/// The result by the rivals' standings.
pub(crate) fn outcome(rivals: &[Rival]) -> ContestOutcome {
    let any = |standing| rivals.iter().any(|rival| rival.standing == standing);
    if any(Standing::Open) {
        ContestOutcome::Undecided
    } else if any(Standing::Tied) {
        ContestOutcome::Tied
    } else if any(Standing::Beaten) {
        ContestOutcome::Best
    } else {
        ContestOutcome::NoContest
    }
}

#[cfg(test)]
#[path = "contest_tests.rs"]
mod contest_tests;
