//! Serial dependence: whether consecutive values of a cell resemble each other.
//!
//! Tests without blocks assume independent values. Values that were measured one after the other, level by level, often
//! violate this: a slow change of the machine then looks like a difference of the levels. The statistic is von
//! Neumann's ratio of ranks (Bartels 1982, "The rank version of von Neumann's ratio test for randomness"), summed over
//! the cells. Its P value comes from random orders within each cell (Besag and Clifford 1991, "Sequential Monte Carlo
//! p-values").

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::ranks;

/// The smallest number of values of a cell that takes part.
const MIN_VALUES: usize = 4;

/// The smallest number of values of all these cells.
const MIN_ALL: usize = 10;

/// The largest number of random orders.
const ORDERS: u32 = 9999;

/// No further orders are drawn once this many are at least as regular as the given one.
const ENOUGH: u32 = 20;

/// How consecutive values depend on each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Serial {
    /// Rank correlation of consecutive values, the mean over the cells weighted by their numbers of values.
    pub correlation: f64,
    /// P value of independence, against a positive correlation.
    pub p: f64,
}

/// The dependence within cells, from their values in the order of measurement. `None` with too few values, or if all
/// values of each cell are equal.
#[must_use]
pub fn serial(cells: &[Vec<f64>], seed: u64) -> Option<Serial> {
    let mut centred: Vec<Vec<f64>> =
        cells.iter().filter(|values| values.len() >= MIN_VALUES).map(|v| ranked(v)).collect();
    centred.retain(|ranks| ranks.iter().any(|rank| *rank != 0.0));
    let all: usize = centred.iter().map(Vec::len).sum();
    if all < MIN_ALL {
        return None;
    }
    let ratio = |cells: &[Vec<f64>]| cells.iter().map(|ranks| neumann(ranks) * ranks.len() as f64).sum::<f64>();
    let found = ratio(&centred);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let p = p(&mut random, |random| {
        centred.iter_mut().for_each(|ranks| ranks.shuffle(random));
        // The sums of a ratio and of its own order can differ in the last digit.
        ratio(&centred) <= found * (1.0 + 1e-12)
    });
    Some(Serial { correlation: 1.0 - found / all as f64 / 2.0, p })
}

/// Doubled ranks minus their mean.
fn ranked(values: &[f64]) -> Vec<f64> {
    let mean = (values.len() + 1) as f64;
    ranks::doubled(values).into_iter().map(|rank| rank as f64 - mean).collect()
}

/// Squared differences of consecutive ranks, divided by squared deviations of ranks: about 2 for independent values.
fn neumann(centred: &[f64]) -> f64 {
    let steps: f64 = centred.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
    steps / centred.iter().map(|rank| rank * rank).sum::<f64>()
}

/// The P value of a statistic, from the event that a random order is as regular as the given one.
fn p<R: Rng>(random: &mut R, mut is_as_regular: impl FnMut(&mut R) -> bool) -> f64 {
    let mut regular = 0;
    for drawn in 1..=ORDERS {
        regular += u32::from(is_as_regular(random));
        if regular == ENOUGH {
            return f64::from(regular) / f64::from(drawn);
        }
    }
    f64::from(regular + 1) / f64::from(ORDERS + 1)
}

#[cfg(test)]
mod tests {
    use statrs::distribution::{ContinuousCDF, Normal};

    use super::*;
    use crate::brunner_munzel::brunner_munzel;

    fn normal(random: &mut ChaCha8Rng) -> f64 {
        Normal::standard().inverse_cdf(random.random_range(1e-12..1.0))
    }

    /// Ten values of one level, then ten of the next, in one autoregressive series.
    fn level_by_level(correlation: f64, random: &mut ChaCha8Rng) -> [Vec<f64>; 2] {
        let mut value = normal(random);
        let mut next = || {
            value = correlation * value + (1.0 - correlation * correlation).sqrt() * normal(random);
            (0.05 * value).exp()
        };
        [(0..10).map(|_| next()).collect(), (0..10).map(|_| next()).collect()]
    }

    /// Nine steps of 1, and squared deviations of ranks of 82.5 in all.
    #[test]
    fn a_rising_row_has_the_correlation_of_its_ratio() {
        let rising: Vec<f64> = (1..=10).map(f64::from).collect();
        let serial = serial(&[rising], 1).unwrap();
        assert!((serial.correlation - (1.0 - 9.0 / 82.5 / 2.0)).abs() < 1e-12, "{serial:?}");
        assert!(serial.p < 0.001, "{serial:?}");
    }

    #[test]
    fn too_few_or_equal_values_have_no_dependence() {
        assert_eq!(serial(&vec![vec![1.0, 2.0, 3.0]; 9], 1), None);
        assert_eq!(serial(&[vec![7.0; 30]], 1), None);
    }

    #[test]
    fn independent_values_are_seldom_called_dependent() {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let found = (0..1000).filter(|_| serial(&level_by_level(0.0, &mut random), 1).unwrap().p <= 0.05).count();
        assert!(found <= 70, "{found} of 1000");
    }

    #[test]
    fn most_false_differences_of_dependent_values_are_found_out() {
        let mut random = ChaCha8Rng::seed_from_u64(6);
        let (mut false_verdicts, mut unwarned) = (0, 0);
        for _ in 0..400 {
            let cells = level_by_level(0.9, &mut random);
            if brunner_munzel(&cells[0], &cells[1]).unwrap().p <= 0.05 {
                false_verdicts += 1;
                unwarned += u32::from(serial(&cells, 1).unwrap().p > 0.05);
            }
        }
        assert!(false_verdicts > 120, "{false_verdicts} of 400 without a check");
        assert!(unwarned <= 60, "{unwarned} of 400");
    }
}
