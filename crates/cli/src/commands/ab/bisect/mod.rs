//! `wirelab ab --bisect`: the first build that is slower.
//!
//! Every step is a run of `ab` against the good build. The first step shows that the last build is worse, and by how
//! much. The others ask on which side of half of this difference a build is.

mod builds;
mod search;
mod text;
mod tree;
mod unusable;

use std::path::PathBuf;

use serde::Serialize;
use wirelab_model::units::{Share, Span};
use wirelab_stats::analysis::{Interval, RequirementResult, RequirementVerdict, Requiring};

use self::builds::Builds;
use self::search::{Search, Side};
use self::unusable::Unusable;
use crate::args::AbArgs;
use crate::commands::ab::build::Build;
use crate::commands::ab::{METRICS, measured};
use crate::commands::report;
use crate::commands::run::{End, Measured};
use crate::failure::{Failure, Result};
use crate::interrupt::stop_flag;
use crate::output::{print, print_json};
use crate::stderr;

/// A comparison of two builds.
#[derive(Debug, Clone, Serialize)]
struct Step {
    /// The compared build.
    build: String,
    /// The build with which it is compared.
    against: String,
    /// Its verdict.
    result: Outcome,
    /// The folders of its runs, without one if nothing was measured.
    runs: Vec<PathBuf>,
}

/// The verdict of a step on its build.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
enum Outcome {
    /// Worse than allowed.
    Worse(Effect),
    /// Not worse than allowed.
    Kept(Effect),
    /// The noise is too large, or the effect is too near to what is allowed.
    Inconclusive(Effect),
    /// The same program as a build that is known.
    Same {
        /// Whether that build is a bad one.
        bad: bool,
    },
    /// The build could not be made or started.
    Unusable(Unusable),
}

/// How much worse a build is.
#[derive(Debug, Clone, Serialize)]
struct Effect {
    metric: String,
    /// The value divided by that of the good build.
    ratio: Option<f64>,
    /// The interval of the ratio.
    interval: Option<Interval>,
    /// The number of common blocks.
    blocks: u32,
}

/// The result of a bisection.
#[derive(Debug, Serialize)]
struct Found {
    /// The metric that decides.
    metric: String,
    /// The limit between good and bad builds, as a share of the good build's value.
    limit: f64,
    /// The builds that may be the first bad one: one, unless builds before it are unclear.
    suspects: Vec<String>,
    /// Whether a direct comparison of the first bad build with the build before it found the difference, too; absent if
    /// the suspects are several.
    confirmed: Option<bool>,
    /// Every comparison, in order.
    steps: Vec<Step>,
}

/// Finds the first build that is worse.
pub(super) fn bisect(args: &AbArgs) -> Result {
    let builds = Builds::read(args, stop_flag()?)?;
    let mut bisection = Bisection { args, builds, steps: Vec::new() };
    let Some(found) = bisection.search()? else {
        let steps = &bisection.steps;
        return if args.show.json { print_json(steps) } else { print(&text::not_worse(steps, args.margin)) };
    };
    if args.show.json {
        print_json(&found)?
    } else {
        print(&text::found(&found))?
    }
    Err(Failure::unmet(text::headline(&found)))
}

struct Bisection<'a> {
    args: &'a AbArgs,
    builds: Builds,
    steps: Vec<Step>,
}

impl Bisection<'_> {
    /// `None` if the last build is not worse than the first one.
    fn search(&mut self) -> Result<Option<Found>> {
        let last = self.builds.len() - 1;
        self.say(&format!("{} builds; first the last one against the first one", last + 1));
        let [good, bad] = [self.usable(0)?, self.usable(last)?];
        let worst = match self.compare([0, last], [&good, &bad], &METRICS, self.args.margin)? {
            Outcome::Worse(effect) => effect,
            Outcome::Kept(_) => return Ok(None),
            Outcome::Unusable(why) => return Err(Failure::failed(why)),
            Outcome::Inconclusive(_) | Outcome::Same { .. } => {
                return Err(Failure::failed(format!(
                    "whether the last build is worse is inconclusive, so nothing was searched.\n{}Give it more time with \
                     --max-duration, or ask for a larger difference with --margin",
                    text::steps(&self.steps)
                )));
            }
        };
        let limit = half(worst.ratio);
        let metric = METRICS.into_iter().find(|name| *name == worst.metric).unwrap_or(METRICS[0]);
        let mut search = Search::new(last + 1);
        while let Some(number) = search.next() {
            self.say(&format!("{} suspects; {}", search.suspects().count(), self.builds.name(number)));
            let side = self.side(number, [&good, &bad], metric, limit)?;
            search.learn(number, side);
            self.builds.keep(&[0, last, search.good(), *search.suspects().end()]);
        }
        let suspects: Vec<_> = search.suspects().collect();
        let confirmed = match suspects[..] {
            [first] => Some(self.confirm([first - 1, first], &bad, metric, limit)?),
            _ => None,
        };
        let suspects = suspects.into_iter().map(|number| self.builds.name(number)).collect();
        Ok(Some(Found { metric: metric.to_owned(), limit: limit.0, suspects, confirmed, steps: self.steps.clone() }))
    }

    /// On which side of the limit a build is. An inconclusive comparison is repeated once, with twice the time.
    fn side(&mut self, number: usize, [good, bad]: [&Build; 2], metric: &'static str, limit: Share) -> Result<Side> {
        let build = match self.builds.get(number)? {
            Ok(build) => build,
            Err(why) => {
                self.record([0, number], Outcome::Unusable(why), Vec::new());
                return Ok(Side::Unclear);
            }
        };
        let known = [(good, false), (bad, true)].into_iter().find(|(known, _)| build.is_same(known));
        let outcome = match known {
            Some((_, bad)) => self.record([0, number], Outcome::Same { bad }, Vec::new()),
            None => self.compare([0, number], [good, &build], &[metric], limit)?,
        };
        Ok(match outcome {
            Outcome::Worse(_) | Outcome::Same { bad: true } => Side::Bad,
            Outcome::Kept(_) | Outcome::Same { bad: false } => Side::Good,
            Outcome::Inconclusive(_) | Outcome::Unusable(_) => Side::Unclear,
        })
    }

    /// Compares the first bad build with the one before it, unless the first step did.
    fn confirm(&mut self, pair: [usize; 2], bad: &Build, metric: &'static str, limit: Share) -> Result<bool> {
        let [before, first] = [self.usable(pair[0])?, self.usable(pair[1])?];
        let is_last = pair[1] == self.builds.len() - 1 || first.is_same(bad);
        if pair[0] == 0 && is_last {
            return Ok(true);
        }
        self.say("the first bad build against the one before it");
        Ok(matches!(self.compare(pair, [&before, &first], &[metric], limit)?, Outcome::Worse(_)))
    }

    fn usable(&mut self, number: usize) -> Result<Build> {
        let name = self.builds.name(number);
        self.builds.get(number)?.map_err(|why| Failure::failed(format!("the build {name} cannot be used: {why}")))
    }

    fn compare(
        &mut self,
        numbers: [usize; 2],
        builds: [&Build; 2],
        metrics: &[&'static str],
        limit: Share,
    ) -> Result<Outcome> {
        let mut runs = Vec::new();
        let mut time = self.args.max_duration;
        loop {
            let Measured { folder, end } = measured(self.args, &builds.map(Clone::clone), metrics, limit, time)?;
            let outcome = match end {
                End::Complete => outcome(&report::requirements(&folder)?),
                End::Hopeless => Outcome::Unusable(Unusable::NoTrial),
                End::NotStarted(failure) => Outcome::Unusable(Unusable::NotStarted(failure)),
            };
            runs.push(folder);
            if runs.len() == 1 && matches!(outcome, Outcome::Inconclusive(_)) {
                time = Span(time.0 * 2);
                self.say("inconclusive; once more, with twice the time");
                continue;
            }
            return Ok(self.record(numbers, outcome, runs));
        }
    }

    fn record(&mut self, [base, head]: [usize; 2], result: Outcome, runs: Vec<PathBuf>) -> Outcome {
        let (build, against) = (self.builds.name(head), self.builds.name(base));
        self.steps.push(Step { build, against, result: result.clone(), runs });
        result
    }

    fn say(&self, words: &str) {
        if !self.args.show.quiet {
            stderr::write_line(format_args!("Bisection, step {}: {words}", self.steps.len() + 1));
        }
    }
}

/// The limit in the middle of an effect, on a logarithmic scale, because ratios multiply; for large effects 99 %, the
/// highest limit that a requirement may have, which is still between no effect and this one.
fn half(ratio: Option<f64>) -> Share {
    let share = ratio.map_or(0.0, |ratio| ratio.sqrt() - 1.0);
    // Two decimals of a per cent are less than the noise, and can be read.
    Share(((share * 1e4).round() / 1e4).clamp(1e-4, 0.99))
}

/// The verdict of all requirements together, with the effect that decides it.
fn outcome(results: &[RequirementResult]) -> Outcome {
    let effect = |(result, test): (&RequirementResult, &Requiring)| Effect {
        metric: result.that.metric.clone(),
        ratio: test.size,
        interval: test.interval,
        blocks: test.blocks,
    };
    let tests = || results.iter().flat_map(|result| result.tests.iter().map(move |test| (result, test)));
    let largest = |wanted: fn(&RequirementVerdict) -> bool| {
        tests().filter(|(_, test)| wanted(&test.verdict)).max_by(|(_, one), (_, other)| {
            let low = |test: &Requiring| test.interval.map_or(0.0, |interval| interval.low);
            low(one).total_cmp(&low(other))
        })
    };
    if let Some(worst) = largest(|verdict| *verdict == RequirementVerdict::NotMet) {
        return Outcome::Worse(effect(worst));
    }
    if let Some(unclear) = largest(|verdict| matches!(verdict, RequirementVerdict::CannotTell { .. })) {
        return Outcome::Inconclusive(effect(unclear));
    }
    match largest(|verdict| *verdict == RequirementVerdict::Met) {
        Some(kept) => Outcome::Kept(effect(kept)),
        None => Outcome::Unusable(Unusable::NoValues),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_in_the_middle_of_the_effect() {
        assert_eq!(half(Some(1.21)), Share(0.1));
        assert_eq!(half(Some(1.05)), Share(0.0247));
        assert_eq!(half(Some(1.0)), Share(1e-4));
        assert_eq!(half(Some(10.0)), Share(0.99));
    }
}
