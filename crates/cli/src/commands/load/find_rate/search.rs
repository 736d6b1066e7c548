//! The search for the highest rate: the next rate and the answer, from the steps so far.

/// Limit of the number of steps, and with it of the time: 10 to find a rate that fails, 4 to halve the interval to
/// [`RESOLUTION`], and 10 that noise may cost.
pub const MOST_STEPS: usize = 24;

/// Limit of the distance between the first rate and any other, as a factor.
const FARTHEST: f64 = 1024.0;

/// The search ends if the lowest rate that failed is at most this many times the highest one below it that did not.
const RESOLUTION: f64 = 1.05;

/// Number of steps that must meet the requirements at the rate of the answer.
const CONFIRMATIONS: usize = 2;

/// A measured step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// Requests per second.
    pub rate: f64,
    /// Whether it met all requirements.
    pub met: bool,
}

/// The result of a search, in requests per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Answer {
    /// The highest rate whose steps all met the requirements, below all rates that did not.
    pub highest_met: Option<f64>,
    /// Number of steps at that rate.
    pub steps_of_highest: usize,
    /// The lowest rate with a step that did not.
    pub lowest_unmet: Option<f64>,
    /// Whether a step at or above the lowest rate that failed met the requirements, so that noise decided one of them.
    pub contradictory: bool,
}

impl Answer {
    /// The answer of these steps.
    pub fn of(steps: &[Step]) -> Self {
        let rates = |met: bool| steps.iter().filter(move |step| step.met == met).map(|step| step.rate);
        let lowest_unmet = rates(false).reduce(f64::min);
        let is_below = |rate: f64| lowest_unmet.is_none_or(|limit| rate < limit);
        let highest_met = rates(true).filter(|rate| is_below(*rate)).reduce(f64::max);
        Self {
            highest_met,
            steps_of_highest: rates(true).filter(|rate| Some(*rate) == highest_met).count(),
            lowest_unmet,
            contradictory: rates(true).any(|rate| !is_below(rate)),
        }
    }

    /// Whether the highest rate met the requirements in enough steps.
    pub const fn is_confirmed(&self) -> bool {
        self.steps_of_highest >= CONFIRMATIONS
    }
}

/// The rate of the next step; `None` at the end of the search.
pub fn next(first: f64, steps: &[Step]) -> Option<f64> {
    if steps.len() >= MOST_STEPS {
        return None;
    }
    let answer = Answer::of(steps);
    match (answer.highest_met, answer.lowest_unmet) {
        (None, None) => Some(first),
        (Some(met), None) => (met < first * FARTHEST).then_some(met * 2.0),
        (None, Some(unmet)) => (unmet > first / FARTHEST).then_some(unmet / 2.0),
        (Some(met), Some(unmet)) if unmet > met * RESOLUTION => Some((met * unmet).sqrt()),
        (Some(met), Some(_)) => (!answer.is_confirmed()).then_some(met),
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
            let (met, unmet) = (answer.highest_met.unwrap(), answer.lowest_unmet.unwrap());
            prop_assert!(met <= capacity && capacity < unmet && unmet <= met * RESOLUTION, "{answer:?}");
            prop_assert!(answer.is_confirmed() && !answer.contradictory);
            prop_assert!(steps.len() <= 16, "{} steps", steps.len());
        }

        #[test]
        fn noise_ends_the_search_in_time_and_is_admitted(noise in prop::collection::vec(any::<bool>(), MOST_STEPS)) {
            let steps = search(100.0, |_, number| noise[number]);
            prop_assert!(steps.len() <= MOST_STEPS);
            let answer = Answer::of(&steps);
            if let Some(met) = answer.highest_met {
                prop_assert!(steps.iter().all(|step| step.rate != met || step.met), "{answer:?}");
                prop_assert!(answer.lowest_unmet.is_none_or(|unmet| met < unmet));
            }
            let above = steps.iter().any(|one| one.met && answer.lowest_unmet.is_some_and(|unmet| one.rate >= unmet));
            prop_assert_eq!(answer.contradictory, above);
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
        assert!(answer.highest_met.unwrap() < rate && answer.contradictory, "{steps:?}");
    }

    #[test]
    fn a_search_ends_if_every_rate_or_none_meets_the_requirements() {
        let all = Answer::of(&search(1.0, |_, _| true));
        assert_eq!((all.highest_met, all.lowest_unmet), (Some(1024.0), None));
        let none = Answer::of(&search(1024.0, |_, _| false));
        assert_eq!((none.highest_met, none.lowest_unmet), (None, Some(1.0)));
    }
}
