//! The text of a bisection.

use std::fmt::Write;

use wirelab_model::units::Share;
use wirelab_stats::analysis::Interval;

use super::{Effect, Found, Outcome, Step};

/// Level of the tests of requirements.
const LEVEL: f64 = 0.05;

/// The answer in a sentence.
pub(super) fn headline(found: &Found) -> String {
    match (&found.suspects[..], found.confirmed) {
        ([first], Some(true)) => format!("the first bad build is {first}"),
        ([first], _) => {
            format!("the first bad build is probably {first}; the comparison with the one before it is not clear")
        }
        (suspects, _) => format!("the first bad build is one of {}: {}", suspects.len(), suspects.join("; ")),
    }
}

/// The whole answer.
pub(super) fn found(found: &Found) -> String {
    let mut text = steps(&found.steps);
    let mut headline = headline(found);
    headline[..1].make_ascii_uppercase();
    let _ = writeln!(text, "{headline}.");
    if let Some(Step { result: Outcome::Worse(effect), against, .. }) = found.steps.last()
        && found.confirmed == Some(true)
    {
        let _ = writeln!(text, "Against {against}: {}.", worse(effect));
    }
    let measured = found.steps.iter().filter(|step| !step.runs.is_empty()).count();
    let _ = writeln!(
        text,
        "Builds are good or bad by {}, with a limit of {} above the good build. The probability that noise misled at least \
         one of {measured} comparisons is at most {}.",
        found.metric,
        Share(found.limit),
        Share((LEVEL * measured as f64).min(1.0))
    );
    text
}

/// The answer if nothing was found.
pub(super) fn not_worse(all: &[Step], margin: Share) -> String {
    format!("{}The last build is not worse than the first one by more than {margin}.\n", steps(all))
}

/// A line for each step.
pub(super) fn steps(steps: &[Step]) -> String {
    let mut text = String::new();
    for (number, step) in steps.iter().enumerate() {
        let says = match &step.result {
            Outcome::Worse(effect) => format!("bad: {}", worse(effect)),
            Outcome::Kept(effect) => format!("good: {}", worse(effect)),
            Outcome::Inconclusive(effect) => format!("inconclusive: {}", worse(effect)),
            Outcome::Same { bad: true } => "bad: the same program as the last build".to_owned(),
            Outcome::Same { bad: false } => "good: the same program as the first build".to_owned(),
            Outcome::Unusable(why) => format!("unclear: {why}"),
        };
        let against = match step.against == steps[0].against {
            true => String::new(),
            false => format!(" (against {})", step.against),
        };
        let _ = writeln!(text, "{:>3}. {}{against}\n     {says}", number + 1, step.build);
        for run in &step.runs {
            let _ = writeln!(text, "     {}", run.display());
        }
    }
    text
}

/// `response_median +5.1 % [+4.2 %, +6.0 %], 12 blocks`.
fn worse(effect: &Effect) -> String {
    let percent = |ratio: f64| format!("{:+.1} %", (ratio - 1.0) * 100.0);
    let size = effect.ratio.map_or_else(|| "not measured".to_owned(), percent);
    let interval = |interval: &Interval| format!(" [{}, {}]", percent(interval.low), percent(interval.high));
    let interval = effect.interval.as_ref().map(interval).unwrap_or_default();
    format!("{} {size}{interval}, {} blocks", effect.metric, effect.blocks)
}
