//! The claims of a study, tested.
//!
//! A claim about several levels ("some implementations ...") has a case for each level, which holds if all tests hold.
//! That at least u of n cases hold is a partial conjunction: Benjamini and Heller (2008), "Screening for partial
//! conjunction hypotheses". By Bonferroni's bound, for any dependence, it is shown at level alpha by u cases that hold
//! at alpha / (n - u + 1) each. This is no correction if all cases must hold, and a division by n if one case suffices.
//! It is refuted by n - u + 1 cases that do not hold at alpha / u each.

use wirelab_model::claim::{Claim, Test};
use wirelab_model::plan::Plan;
use wirelab_model::selector::Selector;
use wirelab_model::study::Study;

use crate::analysis::{Case, Cases, ClaimResult, ClaimVerdict};
use crate::bootstrap::Bootstrap;
use crate::compare::ALPHA;
use crate::effect::{self, Measured, Resolved, resolve};
use crate::trials::Trials;

/// The results of every claim, in the study's order.
pub fn claims(study: &Study, plan: &Plan, trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> Vec<ClaimResult> {
    study.claims.iter().map(|one| claim(one, plan, trials, bootstrap)).collect()
}

fn claim(claim: &Claim, plan: &Plan, trials: &Trials<'_>, bootstrap: &mut Bootstrap) -> ClaimResult {
    let mut untested: Vec<String> = claim.untested.iter().cloned().collect();
    let factor = claim.each.0.keys().next();
    let (tested, absent): (Vec<LevelTests>, Vec<LevelTests>) =
        level_tests(claim, factor, plan).into_iter().partition(|level| factor.is_none() || level.has_cells());
    let absent: Vec<String> = absent.into_iter().filter_map(|of_level| of_level.level).collect();
    untested.extend(factor.and_then(|factor| lacks(factor, &absent)));
    for (number, test) in claim.tests.iter().enumerate() {
        let without: Vec<&LevelTests> = tested.iter().filter(|level| level.tests[number].1.is_empty()).collect();
        if !without.is_empty() {
            let levels: Vec<String> = without.iter().filter_map(|of_level| of_level.level.clone()).collect();
            untested.push(no_cells(&factor.map_or_else(|| test.clone(), |factor| of_levels(test, factor, &levels))));
        } else if test.with.is_some() {
            untested.extend(not_correlated(test, plan).filter(|lacks| !untested.contains(lacks)));
        }
        let partly = tested.iter().filter(|of_level| !of_level.tests[number].1.is_empty());
        let absent = partly.filter_map(|of_level| {
            let (test, resolved) = &of_level.tests[number];
            unresolved(test, resolved, plan).map(|absent| no_cells(&Test { given: absent, ..test.clone() }))
        });
        for sentence in absent {
            if !untested.contains(&sentence) {
                untested.push(sentence);
            }
        }
    }
    let is_complete: Vec<bool> = tested.iter().map(|of_level| of_level.is_complete(plan)).collect();
    let (mut levels, mut measured): (Vec<Option<String>>, Vec<Vec<Measured>>) = (Vec::new(), Vec::new());
    for LevelTests { level, tests } in tested {
        let effects = tests.iter().flat_map(|(test, resolved)| resolved.iter().map(move |one| (test, one)));
        levels.push(level);
        measured.push(effects.map(|(test, one)| effect::measure(test, one, plan, trials, bootstrap)).collect());
    }
    let judged = Judged::of(claim, &measured, &is_complete);
    untested.extend(measured.iter().flatten().filter_map(Measured::omission));
    let cases = |factor: &String| Cases {
        factor: factor.clone(),
        needs: claim.needs,
        least: judged.least as u32,
        tested: (levels.into_iter().zip(&judged.cases))
            .filter_map(|(level, verdict)| Some(Case { level: level?, verdict: *verdict }))
            .collect(),
        absent,
        confidence_to_hold: judged.confidence_to_hold,
        confidence_to_fail: judged.confidence_to_fail,
    };
    ClaimResult {
        id: claim.id.clone(),
        text: claim.text.clone(),
        verdict: verdict(&judged.cases, judged.least),
        cases: factor.map(cases),
        effects: measured.into_iter().flatten().map(|measured| measured.effect).collect(),
        untested: (!untested.is_empty()).then(|| untested.join(" ")),
    }
}

/// The tests for one level of a claim (`None` for a claim without levels), each with the cells of its effects.
struct LevelTests {
    level: Option<String>,
    tests: Vec<(Test, Vec<Resolved>)>,
}

impl LevelTests {
    fn has_cells(&self) -> bool {
        self.tests.iter().any(|(_, resolved)| !resolved.is_empty())
    }

    /// Whether the plan has cells for every level that a test names.
    fn is_complete(&self, plan: &Plan) -> bool {
        let has_all = |test, resolved: &Vec<_>| !resolved.is_empty() && unresolved(test, resolved, plan).is_none();
        self.tests.iter().all(|(test, resolved)| has_all(test, resolved))
    }
}

fn level_tests(claim: &Claim, factor: Option<&String>, plan: &Plan) -> Vec<LevelTests> {
    let with_cells = |test: Test| {
        let resolved = resolve(&test, plan);
        (test, resolved)
    };
    let Some(factor) = factor else {
        return vec![LevelTests { level: None, tests: claim.tests.iter().cloned().map(with_cells).collect() }];
    };
    let of_level = |level: String| {
        let tests = claim.tests.iter().map(|test| of_levels(test, factor, std::slice::from_ref(&level)));
        LevelTests { tests: tests.map(with_cells).collect(), level: Some(level) }
    };
    claim.each.levels(factor).into_iter().map(of_level).collect()
}

/// The test, with these levels in every selector that does not name the factor.
fn of_levels(test: &Test, factor: &str, levels: &[String]) -> Test {
    Test { of: test.of.iter().map(|selector| selector.and(factor, levels)).collect(), ..test.clone() }
}

fn no_cells(test: &Test) -> String {
    let few = test.with.as_ref().map_or_else(String::new, |_| format!("fewer than {} ", Test::LEAST_CELLS));
    let no = if few.is_empty() { "no " } else { &few };
    let given = if test.given.is_empty() { String::new() } else { format!(" where {}", test.given) };
    format!("This plan has {no}cells for {} in {}{given}.", effect::of(&test.of), effect::metrics(test))
}

/// The levels that `where` lists and no effect of the test has.
fn unresolved(test: &Test, resolved: &[Resolved], plan: &Plan) -> Option<Selector> {
    let has = |one: &Selector| resolved.iter().flat_map(Resolved::cells).any(|cell| one.matches(&plan.cells[cell]));
    test.given.0.keys().find_map(|factor| {
        let levels = test.given.levels(factor).into_iter();
        let absent: Vec<String> =
            levels.filter(|level| !has(&Selector::of(factor, std::slice::from_ref(level)))).collect();
        (!absent.is_empty()).then(|| Selector::of(factor, &absent))
    })
}

/// The levels of a correlation that no cell of the plan has.
fn not_correlated(test: &Test, plan: &Plan) -> Option<String> {
    let of = test.of.first()?;
    let has = |one: &Selector| plan.cells.iter().any(|cell| one.matches(cell) && test.given.matches(cell));
    let lack = of.0.keys().filter_map(|factor| {
        let absent =
            of.levels(factor).into_iter().filter(|level| !has(&Selector::of(factor, std::slice::from_ref(level))));
        lacks(factor, &absent.collect::<Vec<_>>())
    });
    Some(lack.collect::<Vec<_>>().join(" ")).filter(|lack| !lack.is_empty())
}

fn lacks(factor: &str, absent: &[String]) -> Option<String> {
    (!absent.is_empty()).then(|| format!("This plan does not have the cells to test {}.", Selector::of(factor, absent)))
}

/// The verdicts of the cases of a claim; a claim without levels is a single case.
struct Judged {
    cases: Vec<ClaimVerdict>,
    least: usize,
    confidence_to_hold: f64,
    confidence_to_fail: f64,
}

impl Judged {
    fn of(claim: &Claim, cases: &[Vec<Measured>], is_complete: &[bool]) -> Self {
        let least = if cases.is_empty() { 0 } else { claim.needs.least(cases.len()) };
        let confidence_to_hold = 1.0 - ALPHA / (cases.len() - least + 1) as f64;
        let confidence_to_fail = 1.0 - ALPHA / least.max(1) as f64;
        let verdicts = cases.iter().map(|effects| case(effects, confidence_to_hold, confidence_to_fail));
        let shown = |(verdict, is_complete): (_, bool)| match verdict {
            ClaimVerdict::Holds if !is_complete => ClaimVerdict::CannotTell,
            verdict => verdict,
        };
        let cases = verdicts.zip(is_complete.iter().copied()).map(shown).collect();
        Self { cases, least, confidence_to_hold, confidence_to_fail }
    }
}

/// The claim holds if enough cases hold. It does not hold if too few cases remain that can hold.
fn verdict(cases: &[ClaimVerdict], least: usize) -> ClaimVerdict {
    let count = |verdict| cases.iter().filter(|case| **case == verdict).count();
    if cases.iter().all(|case| *case == ClaimVerdict::NotTested) {
        ClaimVerdict::NotTested
    } else if count(ClaimVerdict::Holds) >= least {
        ClaimVerdict::Holds
    } else if count(ClaimVerdict::DoesNotHold) > cases.len() - least {
        ClaimVerdict::DoesNotHold
    } else {
        ClaimVerdict::CannotTell
    }
}

/// A case holds if all effects hold and no part of it lacks cells. It does not hold if one effect does not hold.
fn case(effects: &[Measured], confidence_to_hold: f64, confidence_to_fail: f64) -> ClaimVerdict {
    if effects.is_empty() {
        ClaimVerdict::NotTested
    } else if effects.iter().any(|effect| effect.verdict(confidence_to_fail) == ClaimVerdict::DoesNotHold) {
        ClaimVerdict::DoesNotHold
    } else if effects.iter().all(|effect| effect.verdict(confidence_to_hold) == ClaimVerdict::Holds) {
        ClaimVerdict::Holds
    } else {
        ClaimVerdict::CannotTell
    }
}

#[cfg(test)]
#[path = "claims_tests.rs"]
mod tests;
