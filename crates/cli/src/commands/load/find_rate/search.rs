//! The search for the highest rate: the next rate and the answer, from the steps so far.

/// Limit of the number of steps, and with it of the time: 10 to find a rate that fails, 4 to halve the interval to
/// [`RESOLUTION`], and 10 that noise may cost.
pub const MOST_STEPS: usize = 24;

/// Limit of the distance between the first rate and any other, as a factor.
const FARTHEST: f64 = 1024.0;

/// The search ends if the lowest rate that failed is at most this many times the highest one below it that did not.
const RESOLUTION: f64 = 1.05;

/// Number of steps at each of the two rates of the answer.
const CONFIRMATIONS: usize = 2;

/// A measured step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Requests per second.
    pub rate: f64,
    /// Whether it met all requirements.
    pub met: bool,
}

/// The steps at one rate. The majority decides whether the rate meets the requirements.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tried {
    /// Requests per second.
    pub rate: f64,
    /// Number of steps that met the requirements.
    pub met: usize,
    /// Number of steps that did not.
    pub unmet: usize,
}

impl Tried {
    const fn is_confirmed(&self) -> bool {
        self.met + self.unmet >= CONFIRMATIONS
    }
}

/// The result of a search.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The highest rate that meets the requirements, below all rates that do not.
    pub highest_met: Option<Tried>,
    /// The lowest rate that does not.
    pub lowest_unmet: Option<Tried>,
    /// Whether a step disagrees with the answer, so that noise decided it.
    pub contradictory: bool,
}

impl Answer {
    /// The answer of these steps.
    pub fn of(steps: &[Step]) -> Self {
        let tried = tried(steps);
        let lower = |one: Tried, other: Tried| if other.rate < one.rate { other } else { one };
        let higher = |one: Tried, other: Tried| if other.rate > one.rate { other } else { one };
        let lowest_unmet = tried.iter().copied().filter(|one| one.unmet > one.met).reduce(lower);
        let is_below = |rate: f64| lowest_unmet.is_none_or(|limit| rate < limit.rate);
        let highest_met = tried.iter().copied().filter(|one| one.met > one.unmet && is_below(one.rate)).reduce(higher);
        let disagrees = |step: &Step| match step.met {
            true => !is_below(step.rate),
            false => highest_met.is_some_and(|highest| step.rate <= highest.rate),
        };
        Self { highest_met, lowest_unmet, contradictory: steps.iter().any(disagrees) }
    }

    /// Whether both rates were measured more than once.
    pub fn is_confirmed(&self) -> bool {
        let is_confirmed = |one: Option<Tried>| one.is_some_and(|one| one.is_confirmed());
        is_confirmed(self.highest_met) && is_confirmed(self.lowest_unmet)
    }
}

/// The rates of these steps, each once.
fn tried(steps: &[Step]) -> Vec<Tried> {
    let mut all: Vec<Tried> = Vec::new();
    for step in steps {
        let (met, unmet) = (usize::from(step.met), usize::from(!step.met));
        match all.iter_mut().find(|one| one.rate == step.rate) {
            Some(one) => (one.met, one.unmet) = (one.met + met, one.unmet + unmet),
            None => all.push(Tried { rate: step.rate, met, unmet }),
        }
    }
    all
}

/// The rate of the next step; `None` at the end of the search.
pub fn next(first: f64, steps: &[Step]) -> Option<f64> {
    if steps.len() >= MOST_STEPS {
        return None;
    }
    if let Some(tie) = tried(steps).into_iter().find(|one| one.met == one.unmet) {
        return Some(tie.rate);
    }
    let answer = Answer::of(steps);
    match (answer.highest_met, answer.lowest_unmet) {
        (None, None) => Some(first),
        (Some(met), None) => (met.rate < first * FARTHEST).then_some(met.rate * 2.0),
        (None, Some(unmet)) => (unmet.rate > first / FARTHEST).then_some(unmet.rate / 2.0),
        (Some(met), Some(unmet)) if unmet.rate > met.rate * RESOLUTION => Some((met.rate * unmet.rate).sqrt()),
        (Some(met), Some(unmet)) => [met, unmet].into_iter().find(|one| !one.is_confirmed()).map(|one| one.rate),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches with a server that meets the requirements by this rule.
    fn search(first: f64, mut meets: impl FnMut(f64, usize) -> bool) -> Vec<Step> {
        let mut steps = Vec::new();
        while let Some(rate) = next(first, &steps) {
            steps.push(Step { rate, met: meets(rate, steps.len()) });
        }
        steps
    }

    proptest! {
        #[test]
        fn the_answer_is_the_capacity_within_five_percent(capacity in 1.0..1e6_f64, off in -9.0..9.0_f64) {
            let steps = search(capacity * off.exp2(), |rate, _| rate <= capacity);
            let answer = Answer::of(&steps);
            let (met, unmet) = (answer.highest_met.unwrap().rate, answer.lowest_unmet.unwrap().rate);
            prop_assert!(met <= capacity && capacity < unmet && unmet <= met * RESOLUTION, "{answer:?}");
            prop_assert!(answer.is_confirmed() && !answer.contradictory);
            prop_assert!(steps.len() <= 18, "{} steps", steps.len());
        }

        #[test]
        fn noise_ends_the_search_in_time_and_is_admitted(noise in prop::collection::vec(any::<bool>(), MOST_STEPS)) {
            let steps = search(100.0, |_, number| noise[number]);
            prop_assert!(steps.len() <= MOST_STEPS);
            let answer = Answer::of(&steps);
            if let Some(met) = answer.highest_met {
                prop_assert!(met.met > met.unmet, "{answer:?}");
                prop_assert!(answer.lowest_unmet.is_none_or(|unmet| met.rate < unmet.rate));
            }
            let above = steps.iter().any(|one| one.met && answer.lowest_unmet.is_some_and(|unmet| one.rate >= unmet.rate));
            prop_assert!(answer.contradictory || !above, "{answer:?}");
        }
    }

    #[test]
    fn a_rate_that_fails_when_it_is_measured_again_is_no_answer() {
        let mut failed_again = None;
        let steps = search(100.0, |rate, number| {
            let again = number > 6 && rate > 700.0 && rate <= 800.0;
            if again {
                failed_again = Some(rate);
            }
            rate <= 800.0 && !again
        });
        let answer = Answer::of(&steps);
        let rate = failed_again.expect("the search measures its answer again");
        assert!(answer.highest_met.unwrap().rate < rate && answer.contradictory, "{steps:?}");
    }

    #[test]
    fn one_disturbed_step_is_outvoted() {
        for disturbed in 5..12 {
            let steps = search(100.0, |rate, number| (rate <= 800.0) != (number == disturbed));
            let answer = Answer::of(&steps);
            let is_bracket = answer.highest_met.unwrap().rate <= 800.0 && answer.lowest_unmet.unwrap().rate > 800.0;
            assert!(is_bracket || disturbed < 9, "{disturbed}: {answer:?} {steps:?}");
            assert!(answer.is_confirmed(), "{answer:?}");
        }
    }

    #[test]
    fn a_search_ends_if_every_rate_or_none_meets_the_requirements() {
        let all = Answer::of(&search(1.0, |_, _| true));
        assert_eq!((all.highest_met.map(|one| one.rate), all.lowest_unmet), (Some(1024.0), None));
        let none = Answer::of(&search(1024.0, |_, _| false));
        assert_eq!((none.highest_met, none.lowest_unmet.map(|one| one.rate)), (None, Some(1.0)));
    }
}
