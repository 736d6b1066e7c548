//! Wilcoxon's signed-rank test for paired values.
//!
//! Wilcoxon (1945), "Individual comparisons by ranking methods"; zero differences after Pratt (1959), "Remarks on zeros
//! and ties in the Wilcoxon signed rank procedures". It assumes that the differences of pairs are independent and,
//! without an effect, symmetric about zero. Random order within blocks ensures the symmetry.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::ranks;

/// Up to this many differences other than zero the P value is exact; above, a normal approximation.
pub const EXACT_UP_TO: usize = 50;

/// The result of the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// V, the sum of the ranks of the positive differences.
    pub positive: f64,
    /// Differences other than zero.
    pub n: usize,
    /// The P value, two-sided.
    pub p: f64,
}

/// The test of the hypothesis that the differences are symmetric about zero. `None` without differences; P is 1 if all
/// are zero.
#[must_use]
pub fn signed_rank(differences: &[f64]) -> Option<SignedRank> {
    if differences.is_empty() {
        return None;
    }
    let ranked = doubled_ranks(differences);
    let doubled: Vec<usize> = ranked.iter().map(|(rank, _)| *rank).collect();
    let positive: usize = ranked.iter().filter(|(_, positive)| *positive).map(|(rank, _)| rank).sum();
    let p = if doubled.len() <= EXACT_UP_TO { exact_p(&doubled, positive) } else { approximate_p(&doubled, positive) };
    Some(SignedRank { positive: positive as f64 / 2.0, n: doubled.len(), p })
}

/// P values of two one-sided tests: that the differences are symmetric about a value below zero, and about one above.
/// `None` without differences.
#[must_use]
pub fn one_sided(differences: &[f64]) -> Option<(f64, f64)> {
    let test = signed_rank(differences)?;
    let negative: Vec<f64> = differences.iter().map(|difference| -difference).collect();
    let of_negative = signed_rank(&negative)?.positive;
    // The tail on the side of the evidence has half of the weight; the other side is no evidence.
    Some(match test.positive.total_cmp(&of_negative) {
        std::cmp::Ordering::Less => (test.p / 2.0, 1.0),
        std::cmp::Ordering::Equal => (1.0, 1.0),
        std::cmp::Ordering::Greater => (1.0, test.p / 2.0),
    })
}

/// Twice the rank of the size and the sign of each difference other than zero. Zeros are ranked with the others, and
/// then dropped (Pratt).
fn doubled_ranks(differences: &[f64]) -> Vec<(usize, bool)> {
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let ranked = ranks::doubled(&sizes).into_iter().zip(differences);
    ranked.filter(|(_, difference)| **difference != 0.0).map(|(rank, difference)| (rank, *difference > 0.0)).collect()
}

/// The exact P value given the ranks: every pattern of signs is equally likely, and the distribution of the sum is
/// built up rank by rank. It holds with ties too, where tables of the untied distribution do not.
fn exact_p(ranks: &[usize], positive: usize) -> f64 {
    let total: usize = ranks.iter().sum();
    let mut probability = vec![0.0; total + 1];
    probability[0] = 1.0;
    let mut reach = 0;
    for &rank in ranks {
        reach += rank;
        for sum in (0..=reach).rev() {
            let with = if sum >= rank { probability[sum - rank] } else { 0.0 };
            probability[sum] = (probability[sum] + with) / 2.0;
        }
    }
    // The distribution is symmetric, so the other tail has the same weight.
    let tail: f64 = probability[..=positive.min(total - positive)].iter().sum();
    (2.0 * tail).min(1.0)
}

/// The normal approximation, with continuity correction; the variance from the mid-ranks themselves is the one
/// corrected for ties.
fn approximate_p(ranks: &[usize], positive: usize) -> f64 {
    let mean = ranks.iter().sum::<usize>() as f64 / 4.0;
    let variance = ranks.iter().map(|rank| (rank * rank) as f64).sum::<f64>() / 16.0;
    let distance = ((positive as f64 / 2.0 - mean).abs() - 0.5).max(0.0);
    (2.0 * Normal::standard().sf(distance / variance.sqrt())).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(differences: &[f64], positive: f64, p: f64) {
        let test = signed_rank(differences).unwrap();
        assert_eq!(test.positive, positive, "V");
        assert!((test.p - p).abs() < 1e-9, "P is {}, expected {p}", test.p);
    }

    /// Hollander and Wolfe (1973), "Nonparametric statistical methods", table 3.1: Hamilton depression scale before and
    /// after; they and the manual of R's `wilcox.test` give V = 40 and P = 0.01953 one-sided.
    #[test]
    fn the_depression_data_of_hollander_and_wolfe_give_their_p_value() {
        // In thousandths of the scale's points.
        let before = [1830, 500, 1620, 2480, 1680, 1880, 1550, 3060, 1300];
        let after = [878, 647, 598, 2050, 1060, 1290, 1060, 3140, 1290];
        let differences: Vec<f64> = before.iter().zip(after).map(|(x, y)| f64::from(x - y)).collect();
        check(&differences, 40.0, 0.039_062_5);
    }

    /// Darwin's maize in eighths of an inch (Fisher 1935, "The design of experiments"):
    /// `scipy.stats.wilcoxon(d, method="exact")`.
    #[test]
    fn darwins_maize_gives_the_p_value_of_scipy() {
        let d = [6.0, 8.0, 14.0, 16.0, 23.0, 24.0, 28.0, 29.0, 41.0, -48.0, 49.0, 56.0, 60.0, -67.0, 75.0];
        check(&d, 96.0, 0.041_259_765_625);
    }

    /// By enumeration of all sign patterns in Python (`itertools.product`) over `scipy.stats.rankdata`.
    #[test]
    fn ties_and_zeros_give_the_p_values_of_full_enumeration() {
        check(&[1.0, 1.0, 2.0, -2.0, 3.0, 4.0, -1.0, 5.0, 6.0], 38.5, 0.066_406_25);
        check(&[0.0, 1.0, 2.0, -2.0, 3.0, 0.0, 4.0, -1.0, 5.0, 6.0, 3.0], 54.0, 0.050_781_25);
        check(&[0.0, 0.0, 0.0, 1.0], 4.0, 1.0);
        check(&[2.0; 6], 21.0, 0.031_25);
    }

    /// The data of Hollander and Wolfe, whose one-sided P value is 0.01953.
    #[test]
    fn one_sided_values_are_half_on_the_side_of_the_evidence() {
        let d = [952.0, -147.0, 1022.0, 430.0, 620.0, 590.0, 490.0, -80.0, 10.0];
        let (low, high) = one_sided(&d).unwrap();
        assert!((high - 0.019_531_25).abs() < 1e-9 && low == 1.0, "{low} {high}");
        let back: Vec<f64> = d.iter().map(|d| -d).collect();
        assert_eq!(one_sided(&back), Some((high, low)));
        assert_eq!(one_sided(&[]), None);
        assert_eq!(one_sided(&[1.0, -1.0]), Some((1.0, 1.0)));
    }

    /// `scipy.stats.wilcoxon(d, method="approx", correction=True, zero_method="pratt")` for 60 values with ties and a
    /// zero.
    #[test]
    fn the_approximation_for_many_pairs_is_that_of_scipy() {
        let d: Vec<f64> = (1..=60).map(|i| f64::from((i * 37) % 61 - 20) / 10.0).collect();
        let test = signed_rank(&d).unwrap();
        assert_eq!(test.n, 59);
        assert!((test.p - 0.000_112_722_798_763_176_15).abs() < 1e-8, "{}", test.p);
    }

    #[test]
    fn equal_pairs_are_no_evidence() {
        check(&[0.0; 12], 0.0, 1.0);
        assert_eq!(signed_rank(&[]), None);
    }

    #[test]
    fn exact_and_approximate_agree_where_they_meet() {
        let ranks: Vec<usize> = (1..=50).map(|rank| 2 * rank).collect();
        let positive = 2 * 430;
        let (exact, approximate) = (exact_p(&ranks, positive), approximate_p(&ranks, positive));
        assert!((exact - approximate).abs() < 0.001, "{exact} {approximate}");
    }
}
