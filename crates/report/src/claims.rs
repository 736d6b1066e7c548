//! Claims with their verdicts and effects, in words.

use wirelab_model::claim::Needs;
use wirelab_model::metric::Unit;
use wirelab_stats::analysis::{Cases, ClaimResult, ClaimVerdict, Effect};

use crate::Input;
use crate::numbers::{quantity, significant};
use crate::words::{self, phrase};

/// A claim of a run with its verdict, in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JudgedClaim {
    pub id: String,
    pub text: String,
    /// Such as `holds`.
    pub verdict: &'static str,
    /// The number of effects by verdict.
    pub effects: String,
}

/// The claims of a run, in the order of the study.
#[must_use]
pub fn judged_claims(input: &Input) -> Vec<JudgedClaim> {
    let judged = |claim: &ClaimResult| JudgedClaim {
        id: claim.id.clone(),
        text: claim.text.clone(),
        verdict: words::claim(claim.verdict),
        effects: tally(claim),
    };
    input.analysis.claims.iter().map(judged).collect()
}

pub(crate) struct EffectWords {
    /// The common levels; empty if there are none.
    pub at: String,
    /// The metric and the compared cells.
    pub of: String,
    /// The measured size with its interval.
    pub size: String,
    /// The expected bound.
    pub expect: String,
    pub verdict: ClaimVerdict,
}

pub(crate) fn effects(input: &Input, claim: &ClaimResult) -> Vec<EffectWords> {
    claim.effects.iter().map(|effect| in_words(input, effect)).collect()
}

fn in_words(input: &Input, effect: &Effect) -> EffectWords {
    let metric = input.metric(&effect.metric);
    let unit = metric.filter(|_| effect.plain).map_or(Unit::Count, |metric| metric.unit);
    let show = |value: f64| if effect.plain { quantity(value, unit) } else { significant(value) };
    let size = match (effect.size, &effect.interval) {
        (Some(size), Some(interval)) => format!("{} [{}, {}]", show(size), show(interval.low), show(interval.high)),
        (Some(size), None) => format!("{} (no interval: too few trials)", show(size)),
        (None, _) => "not measured: a required cell has no data".to_owned(),
    };
    let title = metric.map_or(effect.metric.as_str(), |metric| metric.title);
    let title = match &effect.with {
        Some(with) => {
            let with = input.metric(with).map_or(with.as_str(), |metric| metric.title);
            format!("Rank correlation of {} with {}", phrase(title), phrase(with))
        }
        None => title.to_owned(),
    };
    let of = if effect.of.is_empty() { title } else { format!("{title}, {}", effect.of) };
    EffectWords { at: effect.at.clone(), of, size, expect: bound(effect, unit), verdict: effect.verdict }
}

/// The bound, in the same unit as the size.
fn bound(effect: &Effect, unit: Unit) -> String {
    use wirelab_model::claim::Bound;
    if !effect.plain {
        return effect.expect.to_string();
    }
    match effect.expect {
        Bound::Above(value) => format!("> {}", quantity(value.value(), unit)),
        Bound::Below(value) => format!("< {}", quantity(value.value(), unit)),
        Bound::Within(low, high) => format!("{} to {}", quantity(low.value(), unit), quantity(high.value(), unit)),
    }
}

/// The number of effects by verdict: `4 effects: 3 as claimed, 1 against the claim`. A claim about several levels also
/// lists the levels by verdict.
pub(crate) fn tally(claim: &ClaimResult) -> String {
    match &claim.cases {
        Some(cases) if !cases.tested.is_empty() => format!("{}. {}", levels(cases), of_effects(claim)),
        _ => of_effects(claim),
    }
}

/// The levels by verdict:
/// `required for some of 3 levels of implementation: holds for a; does not hold for b; inconclusive for c`.
fn levels(cases: &Cases) -> String {
    let needed = match cases.needs {
        Needs::All => "all",
        Needs::Most => "most",
        Needs::Some => "some",
    };
    let noun = if cases.tested.len() == 1 { "level" } else { "levels" };
    let of = |verdict| {
        let levels = cases.tested.iter().filter(|case| case.verdict == verdict).map(|case| case.level.as_str());
        let levels: Vec<_> = levels.collect();
        (!levels.is_empty()).then(|| format!("{} for {}", words::claim(verdict), levels.join(", ")))
    };
    let found = [ClaimVerdict::Holds, ClaimVerdict::DoesNotHold, ClaimVerdict::CannotTell].into_iter().filter_map(of);
    let found: Vec<_> = found.collect();
    format!("required for {needed} of {} {noun} of {}: {}", cases.tested.len(), cases.factor, found.join("; "))
}

fn of_effects(claim: &ClaimResult) -> String {
    if claim.effects.is_empty() {
        return "no effect was tested".to_owned();
    }
    let count = |verdict| claim.effects.iter().filter(|effect| effect.verdict == verdict).count();
    let mut words = Vec::new();
    for (verdict, name) in [
        (ClaimVerdict::Holds, "as claimed"),
        (ClaimVerdict::DoesNotHold, "against the claim"),
        (ClaimVerdict::CannotTell, "inconclusive"),
        (ClaimVerdict::NotTested, "not tested"),
    ] {
        if count(verdict) > 0 {
            words.push(format!("{} {name}", count(verdict)));
        }
    }
    let noun = if claim.effects.len() == 1 { "effect" } else { "effects" };
    format!("{} {noun}: {}", claim.effects.len(), words.join(", "))
}

/// The number of claims by verdict: `3 hold, 1 does not hold, 2 not tested`; `None` without claims.
pub(crate) fn tally_of_all(input: &Input) -> Option<String> {
    let claims = &input.analysis.claims;
    let verdicts = [ClaimVerdict::Holds, ClaimVerdict::DoesNotHold, ClaimVerdict::CannotTell, ClaimVerdict::NotTested];
    let numbers = verdicts.map(|verdict| (verdict, claims.iter().filter(|claim| claim.verdict == verdict).count()));
    let words =
        numbers.into_iter().filter(|(_, number)| *number > 0).map(|(verdict, number)| match (verdict, number) {
            (ClaimVerdict::Holds, 2..) => format!("{number} hold"),
            (ClaimVerdict::DoesNotHold, 2..) => format!("{number} do not hold"),
            _ => format!("{number} {}", words::claim(verdict)),
        });
    (!claims.is_empty()).then(|| words.collect::<Vec<_>>().join(", "))
}

/// The claims without a tested effect: `Not tested: C3, C7.` Their reasons are in the documents.
pub(crate) fn not_tested(input: &Input) -> Option<String> {
    let claims = input.analysis.claims.iter().filter(|claim| claim.verdict == ClaimVerdict::NotTested);
    let ids: Vec<_> = claims.map(|claim| claim.id.as_str()).collect();
    (!ids.is_empty()).then(|| format!("Not tested: {}.", ids.join(", ")))
}
