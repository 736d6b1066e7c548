//! The test of Brunner and Munzel for two independent groups of values.
//!
//! Brunner and Munzel (2000), "The nonparametric Behrens-Fisher problem: asymptotic theory and a small-sample
//! approximation". The hypothesis is that a random value of one group is as often larger as smaller than one of the
//! other. Unlike the rank-sum test of Wilcoxon, Mann and Whitney it assumes no equal shapes: groups of unequal size
//! whose values scatter differently do not raise its error rate. All values have to be independent.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::ranks;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BrunnerMunzel {
    /// The statistic: positive if the second group has the larger values. Infinite for groups without overlap.
    pub statistic: f64,
    /// The P value, two-sided.
    pub p: f64,
}

/// The test. `None` if a group has fewer than two values.
///
/// P has a floor, which matters for groups (nearly) without overlap, where the variance vanishes: the smallest P value
/// of any rank test, [`smallest_p`].
#[must_use]
pub fn brunner_munzel(first: &[f64], second: &[f64]) -> Option<BrunnerMunzel> {
    if first.len() < 2 || second.len() < 2 {
        return None;
    }
    let (n, m) = (first.len() as f64, second.len() as f64);
    let pooled = ranks_of(&[first, second].concat());
    let (of_first, of_second) = pooled.split_at(first.len());
    let distance = mean(of_second) - mean(of_first);
    let (a, b) = (n * variance(of_first, first), m * variance(of_second, second));
    let statistic = n * m / (n + m) * distance / (a + b).sqrt();
    if statistic.is_nan() {
        // All values are equal.
        return Some(BrunnerMunzel { statistic: 0.0, p: 1.0 });
    }
    let freedom = (a + b).powi(2) / (a * a / (n - 1.0) + b * b / (m - 1.0));
    let tail = StudentsT::new(0.0, 1.0, freedom).map_or(0.0, |t| t.sf(statistic.abs()));
    Some(BrunnerMunzel { statistic, p: (2.0 * tail).max(smallest_p(first.len(), second.len())) })
}

/// The P value of two groups without overlap: 2 divided by the number of ways to choose the first group.
#[must_use]
pub fn smallest_p(first: usize, second: usize) -> f64 {
    let choices: f64 = (1..=first).map(|k| (second + k) as f64 / k as f64).product();
    (2.0 / choices).min(1.0)
}

/// The variance of the placements: ranks among all values, less ranks within the group.
fn variance(pooled: &[f64], group: &[f64]) -> f64 {
    let placements: Vec<f64> = pooled.iter().zip(ranks_of(group)).map(|(all, own)| all - own).collect();
    let center = mean(&placements);
    placements.iter().map(|placement| (placement - center).powi(2)).sum::<f64>() / (group.len() as f64 - 1.0)
}

fn ranks_of(values: &[f64]) -> Vec<f64> {
    ranks::doubled(values).into_iter().map(|rank| rank as f64 / 2.0).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of Brunner and Munzel: pain scores after a shoulder operation. `scipy.stats.brunnermunzel` gives
    /// these numbers.
    #[test]
    fn the_pain_scores_give_the_numbers_of_scipy() {
        let first = [1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 4.0, 1.0, 1.0];
        let second = [3.0, 3.0, 4.0, 3.0, 1.0, 2.0, 3.0, 1.0, 1.0, 5.0, 4.0];
        let test = brunner_munzel(&first, &second).unwrap();
        assert!((test.statistic - 3.137_467_482_302_950_5).abs() < 1e-12, "{test:?}");
        assert!((test.p - 0.005_786_208_666_151_538).abs() < 1e-9, "{test:?}");
        let back = brunner_munzel(&second, &first).unwrap();
        assert!((back.statistic + test.statistic).abs() < 1e-12 && (back.p - test.p).abs() < 1e-12);
    }

    #[test]
    fn groups_without_overlap_have_the_smallest_possible_p() {
        let test = brunner_munzel(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0]).unwrap();
        assert_eq!((test.statistic, test.p), (f64::INFINITY, 2.0 / 35.0));
        assert!((smallest_p(10, 10) - 2.0 / 184_756.0).abs() < 1e-15);
    }

    #[test]
    fn one_value_is_no_group_and_equal_values_are_no_evidence() {
        assert_eq!(brunner_munzel(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(brunner_munzel(&[1.0; 40], &[1.0; 30]).unwrap().p, 1.0);
    }
}
