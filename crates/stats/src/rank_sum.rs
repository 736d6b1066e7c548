//! Wilcoxon's rank-sum test for two independent groups of values, also called the Mann-Whitney test.
//!
//! Wilcoxon (1945), "Individual comparisons by ranking methods"; Mann and Whitney (1947), "On a test of whether one of two random
//! variables is stochastically larger than the other". It assumes that all values are independent and, without an effect,
//! come from one distribution of any form.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::ranks;

/// Up to this many values of both groups together the P value is exact; above, a normal approximation.
pub const EXACT_UP_TO: usize = 50;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RankSum {
    /// U: the number of pairs with a larger value in the first group; ties count as halves.
    pub u: f64,
    /// The P value, two-sided.
    pub p: f64,
}

/// The test of the hypothesis that both groups come from the same distribution. `None` if a group is empty.
#[must_use]
pub fn rank_sum(first: &[f64], second: &[f64]) -> Option<RankSum> {
    if first.is_empty() || second.is_empty() {
        return None;
    }
    let n = first.len();
    let doubled = ranks::doubled(&[first, second].concat());
    let sum = doubled[..n].iter().sum();
    let p = if doubled.len() <= EXACT_UP_TO { exact_p(&doubled, n, sum) } else { approximate_p(&doubled, n, sum) };
    Some(RankSum { u: (sum - n * (n + 1)) as f64 / 2.0, p })
}

/// The exact P value given the ranks: every choice of `n` of them is equally likely to be the first group's, and the number of
/// choices by their sum is built up rank by rank. It holds with ties too.
fn exact_p(ranks: &[usize], n: usize, sum: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    // Counts of choices stay below 2^53 for 50 ranks, so that they are exact.
    let mut choices = vec![vec![0.0_f64; total + 1]; n + 1];
    choices[0][0] = 1.0;
    for (seen, &rank) in ranks.iter().enumerate() {
        for chosen in (1..=n.min(seen + 1)).rev() {
            let (fewer, more) = choices.split_at_mut(chosen);
            for (so_far, count) in more[0].iter_mut().enumerate().skip(rank) {
                *count += fewer[chosen - 1][so_far - rank];
            }
        }
    }
    let all: f64 = choices[n].iter().sum();
    // With ties the distribution need not be symmetric: every sum at least as far from the mean counts.
    let mean = (total * n) as f64 / ranks.len() as f64;
    let distance = (sum as f64 - mean).abs() - 1e-9;
    let beyond: f64 =
        choices[n].iter().enumerate().filter(|(s, _)| (*s as f64 - mean).abs() >= distance).map(|(_, c)| c).sum();
    (beyond / all).min(1.0)
}

/// The normal approximation, with continuity correction; the variance from the mid-ranks themselves is the one corrected for ties.
fn approximate_p(ranks: &[usize], n: usize, sum: usize) -> f64 {
    let all = ranks.len() as f64;
    let (n, m) = (n as f64, all - n as f64);
    let mean = ranks.iter().sum::<usize>() as f64 / 2.0 / all;
    let squares: f64 = ranks.iter().map(|rank| (*rank as f64 / 2.0 - mean).powi(2)).sum();
    let variance = n * m * squares / (all * (all - 1.0));
    if variance == 0.0 {
        return 1.0;
    }
    let distance = ((sum as f64 / 2.0 - n * mean).abs() - 0.5).max(0.0);
    (2.0 * Normal::standard().sf(distance / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(first: &[f64], second: &[f64], u: f64, p: f64) {
        let test = rank_sum(first, second).unwrap();
        assert_eq!(test.u, u, "U");
        assert!((test.p - p).abs() < 1e-9, "P is {}, expected {p}", test.p);
    }

    /// Hollander and Wolfe (1973), "Nonparametric statistical methods", page 69: permeability of the human chorioamnion. The manual of
    /// R's `wilcox.test` gives W = 35 and P = 0.1272 one-sided: 382 of the 3003 choices.
    #[test]
    fn the_permeability_data_of_hollander_and_wolfe_give_their_p_value() {
        let at_term = [0.80, 0.83, 1.89, 1.04, 1.45, 1.38, 1.91, 1.64, 0.73, 1.46];
        let earlier = [1.15, 0.88, 0.90, 0.74, 1.21];
        check(&at_term, &earlier, 35.0, 2.0 * 382.0 / 3003.0);
    }

    #[test]
    fn groups_without_overlap_have_the_smallest_possible_p() {
        check(&[1.0, 2.0, 3.0], &[4.0, 5.0, 6.0, 7.0], 0.0, 2.0 / 35.0);
        check(&[4.0, 5.0, 6.0, 7.0], &[1.0, 2.0, 3.0], 12.0, 2.0 / 35.0);
    }

    /// Of the 20 choices of three mid-ranks out of 1.5, 1.5, 3.5, 3.5, 5.5, 5.5 the sums are 6.5 and 14.5 (twice each), 8.5 and 12.5
    /// (four times each), 10.5 (eight times).
    #[test]
    fn ties_give_the_p_values_of_full_enumeration() {
        check(&[1.0, 1.0, 2.0], &[2.0, 3.0, 3.0], 0.5, 4.0 / 20.0);
        check(&[1.0, 2.0, 2.0], &[1.0, 3.0, 3.0], 2.5, 12.0 / 20.0);
        check(&[7.0; 4], &[7.0; 5], 10.0, 1.0);
    }

    #[test]
    fn exact_and_approximate_agree_where_they_meet() {
        let ranks: Vec<usize> = (1..=50).map(|rank| 2 * rank).collect();
        let sum = 2 * 540;
        let (exact, approximate) = (exact_p(&ranks, 25, sum), approximate_p(&ranks, 25, sum));
        assert!((exact - approximate).abs() < 0.001, "{exact} {approximate}");
        assert!(exact > 0.01 && exact < 0.5, "{exact}");
    }

    #[test]
    fn an_empty_group_is_no_test_and_equal_values_are_no_evidence() {
        assert_eq!(rank_sum(&[], &[1.0]), None);
        assert_eq!(rank_sum(&[1.0; 40], &[1.0; 40]).unwrap().p, 1.0);
    }
}
