//! Claims and what became of them, in the words of a report.

use wirelab_model::metric::Unit;
use wirelab_stats::analysis::{ClaimResult, ClaimVerdict, Effect};

use crate::Input;
use crate::numbers::{quantity, significant};

/// An effect in words.
pub(crate) struct EffectWords {
    /// Where: levels, or nothing.
    pub at: String,
    /// Of what, in which metric.
    pub of: String,
    /// Its size with its interval.
    pub size: String,
    /// What was expected.
    pub expect: String,
    /// Whether it is so.
    pub verdict: ClaimVerdict,
}

/// The effects of a claim.
pub(crate) fn effects(input: &Input, claim: &ClaimResult) -> Vec<EffectWords> {
    claim.effects.iter().map(|effect| words(input, effect)).collect()
}

fn words(input: &Input, effect: &Effect) -> EffectWords {
    let metric = input.metric(&effect.metric);
    let unit = metric.filter(|_| effect.plain).map_or(Unit::Count, |metric| metric.unit);
    let show = |value: f64| if effect.plain { quantity(value, unit) } else { significant(value) };
    let size = match (effect.size, &effect.interval) {
        (Some(size), Some(interval)) => format!("{} [{}, {}]", show(size), show(interval.low), show(interval.high)),
        (Some(size), None) => format!("{} (no interval: too few trials)", show(size)),
        (None, _) => "not measured: a cell that it needs has no values".to_owned(),
    };
    let title = metric.map_or(effect.metric.as_str(), |metric| metric.title);
    let of = if effect.of.is_empty() { title.to_owned() } else { format!("{title}, {}", effect.of) };
    EffectWords { at: effect.at.clone(), of, size, expect: bound(effect, unit), verdict: effect.verdict }
}

/// The bound in the unit in which the effect is shown.
fn bound(effect: &Effect, unit: Unit) -> String {
    use wirelab_model::claim::Bound;
    if !effect.plain {
        return effect.expect.to_string();
    }
    match effect.expect {
        Bound::Above(value) => format!("> {}", quantity(value, unit)),
        Bound::Below(value) => format!("< {}", quantity(value, unit)),
        Bound::Within(low, high) => format!("{} to {}", quantity(low, unit), quantity(high, unit)),
    }
}

/// How many of the effects hold, in words: `3 of 4 effects hold, 1 does not`.
pub(crate) fn tally(claim: &ClaimResult) -> String {
    if claim.effects.is_empty() {
        return "no effect was looked at".to_owned();
    }
    let count = |verdict| claim.effects.iter().filter(|effect| effect.verdict == verdict).count();
    let mut words = Vec::new();
    for (verdict, name) in [
        (ClaimVerdict::Holds, "as claimed"),
        (ClaimVerdict::DoesNotHold, "against the claim"),
        (ClaimVerdict::CannotTell, "undecided"),
        (ClaimVerdict::NotTested, "not tested"),
    ] {
        if count(verdict) > 0 {
            words.push(format!("{} {name}", count(verdict)));
        }
    }
    let noun = if claim.effects.len() == 1 { "effect" } else { "effects" };
    format!("{} {noun}: {}", claim.effects.len(), words.join(", "))
}
