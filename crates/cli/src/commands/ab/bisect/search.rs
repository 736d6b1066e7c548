//! The search for the first bad build: which build is measured next, and which builds remain suspects.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// The side of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// It is as good as the first build.
    Good,
    /// It is as bad as the last build.
    Bad,
    /// It could not be measured, or the noise was too large.
    Unclear,
}

/// A bisection of builds in the order of time. The first one is good, and the last one is bad.
#[derive(Debug)]
pub(super) struct Search {
    good: usize,
    bad: usize,
    unclear: BTreeSet<usize>,
}

impl Search {
    /// A search in so many builds, at least two.
    pub(super) const fn new(builds: usize) -> Self {
        Self { good: 0, bad: builds - 1, unclear: BTreeSet::new() }
    }

    /// The build to measure: the untried one nearest to the middle of the suspects. `None` at the end.
    pub(super) fn next(&self) -> Option<usize> {
        let middle = self.good + (self.bad - self.good) / 2;
        let untried = (self.good + 1..self.bad).filter(|build| !self.unclear.contains(build));
        untried.min_by_key(|build| build.abs_diff(middle))
    }

    /// Records what a measurement of a build says.
    pub(super) fn learn(&mut self, build: usize, side: Side) {
        match side {
            Side::Good => self.good = build,
            Side::Bad => self.bad = build,
            Side::Unclear => drop(self.unclear.insert(build)),
        }
    }

    /// The last build that is known to be good.
    pub(super) const fn good(&self) -> usize {
        self.good
    }

    /// The builds that may be the first bad one; at the end, those before the last are unclear.
    pub(super) const fn suspects(&self) -> RangeInclusive<usize> {
        self.good + 1..=self.bad
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Searches in builds that are bad from `first_bad` on. Returns the suspects and the number of steps.
    fn found(builds: usize, first_bad: usize, unclear: &BTreeSet<usize>) -> (RangeInclusive<usize>, usize) {
        let mut search = Search::new(builds);
        let mut steps = 0;
        while let Some(build) = search.next() {
            steps += 1;
            search.learn(
                build,
                match unclear.contains(&build) {
                    true => Side::Unclear,
                    false if build >= first_bad => Side::Bad,
                    false => Side::Good,
                },
            );
        }
        (search.suspects(), steps)
    }

    proptest! {
        #[test]
        fn the_first_bad_build_is_found_in_logarithmic_time((builds, first_bad) in (2..500usize).prop_flat_map(|n| (Just(n), 1..n))) {
            let (suspects, steps) = found(builds, first_bad, &BTreeSet::new());
            prop_assert_eq!(suspects, first_bad..=first_bad);
            prop_assert!(steps <= builds.ilog2() as usize + 1);
        }

        #[test]
        fn unclear_builds_stay_suspects_and_no_other((first_bad, unclear) in (1..30usize, proptest::collection::btree_set(1..29usize, 0..12))) {
            let (suspects, _) = found(30, first_bad, &unclear);
            prop_assert!(suspects.contains(&first_bad));
            prop_assert!(suspects.clone().all(|build| build == *suspects.end() || unclear.contains(&build)));
        }
    }
}
