//! The number of blocks that a wanted sensitivity needs, from the noise of an A/A pair of an earlier run.
//!
//! The signed-rank test of n pairs finds a shift δ of normal differences with standard deviation s at the two-sided
//! level α with the probability 1 − β if
//!
//! ```text
//! n = π/3 (z(1 − α/2) + z(1 − β))² (s/δ)² + z(1 − α/2)²/2
//! ```
//!
//! The first term is the number for known s, divided by the relative efficiency 3/π of the rank test for normal values
//! (Lehmann 1975, "Nonparametrics", section 4.2). The second one is for small numbers (Guenther 1981, "Sample size
//! formulas for normal theory T tests"). For heavier tails, the rank test needs fewer blocks. α is divided by
//! the number of comparisons, as in the first step of Holm's procedure.

use std::f64::consts::PI;

use statrs::distribution::{ContinuousCDF, Normal};
use wirelab_model::journal::TrialRecord;
use wirelab_model::plan::Plan;

use crate::anytime;
use crate::compare::{ALPHA, MIN_BLOCKS};
use crate::quantile;
use crate::trials::Trials;

/// The probability with which a difference of the wanted size is found.
pub const POWER: f64 = 0.8;

/// The noise of an A/A pair in a metric: the standard deviation of the logarithm of the ratio within a block, by the
/// median of its sizes. `None` with fewer blocks than a verdict needs, or without positive values.
#[must_use]
pub fn noise(plan: &Plan, records: &[TrialRecord], pair: [usize; 2], metric: &str) -> Option<f64> {
    let trials = Trials::of(plan, records, &[]);
    let [cell, twin] = pair.map(|cell| trials.in_blocks(cell, metric));
    let other = |block: u32| twin.iter().find(|(own, _)| *own == block).map(|(_, value)| *value);
    let sizes: Option<Vec<f64>> = cell
        .iter()
        .filter_map(|(block, value)| Some((*value, other(*block)?)))
        .map(|(value, other)| (value > 0.0 && other > 0.0).then(|| (value / other).ln().abs()))
        .collect();
    let sizes = quantile::sorted(&sizes?);
    // The median size of a standard normal value.
    let unit = Normal::standard().inverse_cdf(0.75);
    (sizes.len() >= MIN_BLOCKS as usize).then(|| quantile::median(&sizes).map(|median| median / unit)).flatten()
}

/// The number of blocks with which a difference is found, given its share of the baseline's value. At least the number
/// that a verdict needs.
#[must_use]
pub fn blocks(noise: f64, difference: f64, comparisons: u32) -> f64 {
    let [scale, few] = terms(comparisons);
    ((scale * noise / difference.ln_1p()).powi(2) + few).ceil().max(f64::from(MIN_BLOCKS))
}

/// The smallest difference that so many blocks find.
#[must_use]
pub fn smallest(noise: f64, blocks: u32, comparisons: u32) -> f64 {
    let [scale, few] = terms(comparisons);
    (scale * noise / (f64::from(blocks) - few).max(1.0).sqrt()).exp_m1()
}

/// The factor of s/δ under the square, and the term for small numbers.
fn terms(comparisons: u32) -> [f64; 2] {
    let z = |p: f64| Normal::standard().inverse_cdf(p);
    let level = (ALPHA - anytime::BEFORE_END) / f64::from(comparisons.max(1));
    let critical = z(1.0 - level / 2.0);
    [(critical + z(POWER)) * (PI / 3.0).sqrt(), critical.powi(2) / 2.0]
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::wilcoxon::signed_rank;

    /// The share of simulated studies with so many blocks that find the difference.
    fn power(blocks: usize, noise: f64, difference: f64) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let normal = Normal::new(difference.ln_1p(), noise).unwrap();
        let is_found = |_: &u32| {
            let differences: Vec<f64> =
                (0..blocks).map(|_| normal.inverse_cdf(random.random_range(1e-12..1.0))).collect();
            signed_rank(&differences).unwrap().p <= ALPHA - anytime::BEFORE_END
        };
        let studies = 1000;
        (0..studies).filter(is_found).count() as f64 / f64::from(studies)
    }

    #[test]
    fn so_many_blocks_find_the_difference_with_the_wanted_probability() {
        for (noise, difference) in [(0.05, 0.05), (0.10, 0.05), (0.02, 0.01)] {
            let blocks = blocks(noise, difference, 1);
            let power = power(blocks as usize, noise, difference);
            assert!((power - POWER).abs() < 0.05, "{blocks} blocks: {power}");
        }
    }

    #[test]
    fn the_smallest_difference_is_that_for_which_the_blocks_suffice() {
        for (noise, count, comparisons) in [(0.05, 12, 1), (0.2, 40, 8)] {
            let difference = smallest(noise, count, comparisons);
            let needed = blocks(noise, difference, comparisons);
            assert!((needed - f64::from(count)).abs() <= 1.0, "{needed}");
            assert!(smallest(noise, count + 1, comparisons) < difference);
            assert!(smallest(noise, count, comparisons + 1) > difference);
        }
    }
}
