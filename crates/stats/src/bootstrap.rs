//! Bootstrap intervals over trials: Efron (1979), "Bootstrap methods: another look at the jackknife"; Efron and Tibshirani (1993), "An
//! introduction to the bootstrap", chapter 13.
//!
//! Intervals are percentile intervals for three reasons. The acceleration of a BCa interval comes from the jackknife, which is
//! inconsistent for the median (Miller 1974; Efron 1982). Percentile intervals respect transformations, so that the interval of a/b
//! is the reciprocal of that of b/a. And they never leave the range of the data. Simulation measures their coverage at 10 to 30
//! blocks (`docs/statistics.md`).
//!
//! Blocks are resampled, all cells of a block together, which preserves their common variation. Equal numbers of blocks share the
//! same resamples. Without blocks, each cell is resampled by itself.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wirelab_model::table::Design;

use crate::analysis::Interval;
use crate::quantile;

/// Resamples per interval. At 4000 the ends of a 95 % interval have 100 resamples beyond them.
pub const RESAMPLES: usize = 4000;

/// The smallest number of values for an interval.
pub const MIN_VALUES: usize = 3;

/// The source of resamples: the same seed gives the same intervals.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    seed: u64,
    /// By number of blocks and place of the cell (0 if all cells share their blocks): for each resample, the frequency of each block.
    counts: BTreeMap<(usize, usize), Vec<u16>>,
}

impl Bootstrap {
    /// A source of resamples that depend only on the seed and the number of blocks.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, counts: BTreeMap::new() }
    }

    /// The bootstrap distribution of an effect of the medians of several cells.
    ///
    /// `cells` has one list per cell, of equal length and in the same order of blocks. `None` for fewer than [`MIN_VALUES`] blocks, or
    /// if the effect of some resample is not finite (division by a median of 0).
    pub fn distribution(&mut self, cells: &[&[f64]], effect: impl Fn(&[f64]) -> f64) -> Option<Distribution> {
        self.under(Design::Blocks, cells, effect)
    }

    /// The same for a design. Without blocks each cell is resampled by itself, and lists may differ in length; `None` if a list has fewer
    /// than [`MIN_VALUES`].
    pub fn under(&mut self, design: Design, cells: &[&[f64]], effect: impl Fn(&[f64]) -> f64) -> Option<Distribution> {
        let fits = |values: &&[f64]| (MIN_VALUES..=usize::from(u16::MAX)).contains(&values.len());
        if cells.is_empty() || !cells.iter().all(fits) {
            return None;
        }
        let place_of = |place: usize| if design == Design::Blocks { 0 } else { place };
        for (place, values) in cells.iter().enumerate() {
            self.counts(values.len(), place_of(place));
        }
        let orders: Vec<_> = cells.iter().map(|values| Order::of(values)).collect();
        let counts: Vec<_> =
            cells.iter().enumerate().map(|(place, values)| &self.counts[&(values.len(), place_of(place))]).collect();
        let mut medians = vec![0.0; cells.len()];
        let mut effects = Vec::with_capacity(RESAMPLES);
        for resample in 0..RESAMPLES {
            for ((median, order), counts) in medians.iter_mut().zip(&orders).zip(&counts) {
                let n = order.0.len();
                *median = order.median(&counts[resample * n..(resample + 1) * n]);
            }
            effects.push(effect(&medians));
        }
        Distribution::of(effects)
    }

    /// Calls `each` with the medians of several cells for each resample of `n` blocks. `cells` has a list per cell of values with the
    /// number of their block. In a resample without any of its blocks, a cell's median is NaN.
    pub fn medians(&mut self, n: usize, cells: &[Vec<(usize, f64)>], mut each: impl FnMut(&[f64])) {
        if n < MIN_VALUES || n > usize::from(u16::MAX) {
            return;
        }
        let orders: Vec<_> = cells.iter().map(|values| Order::of_blocks(values.clone())).collect();
        let mut medians = vec![0.0; cells.len()];
        for counts in self.counts(n, 0).chunks_exact(n) {
            for (median, order) in medians.iter_mut().zip(&orders) {
                *median = order.median(counts);
            }
            each(&medians);
        }
    }

    fn counts(&mut self, n: usize, place: usize) -> &[u16] {
        self.counts.entry((n, place)).or_insert_with(|| {
            let mut random = ChaCha8Rng::seed_from_u64(self.seed);
            random.set_stream(n as u64 | (place as u64) << 32);
            let mut counts = vec![0; RESAMPLES * n];
            for resample in counts.chunks_exact_mut(n) {
                for _ in 0..n {
                    resample[random.random_range(0..n)] += 1;
                }
            }
            counts
        })
    }
}

/// Values in ascending order with their blocks. Counting finds the median of a resample without sorting again.
struct Order(Vec<(f64, usize)>);

impl Order {
    fn of(values: &[f64]) -> Self {
        Self::of_blocks((0..).zip(values.iter().copied()).collect())
    }

    fn of_blocks(values: Vec<(usize, f64)>) -> Self {
        let mut order: Vec<_> = values.into_iter().map(|(block, value)| (value, block)).collect();
        order.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        Self(order)
    }

    /// The median of the values in a resample; NaN if the resample has none.
    fn median(&self, counts: &[u16]) -> f64 {
        let n: usize = self.0.iter().map(|(_, block)| usize::from(counts[*block])).sum();
        if n == 0 {
            return f64::NAN;
        }
        let (mut seen, mut lower) = (0, None);
        for &(value, block) in &self.0 {
            seen += usize::from(counts[block]);
            if seen > n / 2 {
                return f64::midpoint(lower.unwrap_or(value), value);
            }
            if seen > (n - 1) / 2 {
                lower.get_or_insert(value);
            }
        }
        unreachable!("the counts add up to n")
    }
}

/// The effects of all resamples in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution(Vec<f64>);

impl Distribution {
    /// `None` if an effect is not finite, or without effects.
    #[must_use]
    pub fn of(mut effects: Vec<f64>) -> Option<Self> {
        effects.sort_unstable_by(f64::total_cmp);
        // Infinities and NaN are at the ends of the total order.
        let finite = effects.first()?.is_finite() && effects.last()?.is_finite();
        finite.then_some(Self(effects))
    }

    /// The percentile interval of a nominal coverage, for example 0.95.
    ///
    /// # Panics
    /// Never: there are resamples.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Interval {
        let end = |q| quantile::interpolated(&self.0, q).expect("there are resamples");
        Interval { low: end((1.0 - confidence) / 2.0), high: end(f64::midpoint(1.0, confidence)), confidence }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratio(medians: &[f64]) -> f64 {
        medians[0] / medians[1]
    }

    #[test]
    fn the_median_of_a_resample_is_that_of_the_values_written_out() {
        let values = [5.0, 1.0, 4.0, 2.0];
        let order = Order::of(&values);
        for counts in [[1u16, 1, 1, 1], [4, 0, 0, 0], [0, 2, 0, 2], [2, 1, 1, 0], [0, 3, 1, 0]] {
            let written: Vec<f64> =
                values.iter().zip(counts).flat_map(|(v, c)| std::iter::repeat_n(*v, c.into())).collect();
            assert_eq!(Some(order.median(&counts)), quantile::median(&written), "{counts:?}");
        }
    }

    /// Efron (1982), "The jackknife, the bootstrap and other resampling plans", section 10.3: the bootstrap median of an odd sample
    /// is its k-th smallest value with a binomial probability. For 9 values P(median = smallest) = P(Binomial(9, 1/9) >= 5).
    #[test]
    fn the_distribution_of_the_median_is_the_exact_one() {
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        let distribution = Bootstrap::new(1).distribution(&[&values], |m| m[0]).unwrap();
        // 1 - pbinom(4, 9, k/9) in R, or scipy.stats.binom.sf(4, 9, k / 9), k = 1 to 8.
        let exact = [0.00145, 0.03037, 0.14485, 0.36551, 0.63449, 0.85515, 0.96963, 0.99855];
        for (k, exact) in (1..).zip(exact) {
            let share = distribution.0.iter().filter(|m| **m <= f64::from(k)).count() as f64 / RESAMPLES as f64;
            assert!((share - exact).abs() < 0.025, "P(median <= {k}) is {share}, exact {exact}");
        }
    }

    #[test]
    fn the_interval_of_a_ratio_is_the_reciprocal_of_the_reversed_one() {
        let (a, b) = ([3.0, 4.0, 5.0, 4.5, 3.2, 4.8], [2.0, 2.1, 1.9, 2.4, 2.2, 2.0]);
        let forward = Bootstrap::new(1).distribution(&[&a, &b], ratio).unwrap().interval(0.95);
        let back = Bootstrap::new(1).distribution(&[&b, &a], ratio).unwrap().interval(0.95);
        assert!((forward.low * back.high - 1.0).abs() < 0.01 && (forward.high * back.low - 1.0).abs() < 0.01);
    }

    #[test]
    fn common_variation_of_blocks_does_not_widen_a_ratio() {
        let base: Vec<f64> = (0..20).map(|block| 100.0 + 10.0 * f64::from(block % 7)).collect();
        let double: Vec<f64> = base.iter().map(|value| 2.0 * value).collect();
        let interval = Bootstrap::new(1).distribution(&[&double, &base], ratio).unwrap().interval(0.95);
        assert_eq!((interval.low, interval.high), (2.0, 2.0));
    }

    #[test]
    fn cells_without_blocks_are_resampled_each_by_itself() {
        let (a, b): (Vec<f64>, Vec<f64>) = ((1..=20).map(f64::from).collect(), (1..=12).map(f64::from).collect());
        let difference = |m: &[f64]| m[0] - m[1];
        let mut bootstrap = Bootstrap::new(1);
        let shared = bootstrap.under(Design::Blocks, &[&a, &a], difference).unwrap().interval(0.95);
        assert_eq!((shared.low, shared.high), (0.0, 0.0));
        let apart = bootstrap.under(Design::Independent, &[&a, &a], difference).unwrap().interval(0.95);
        assert!(apart.low < -3.0 && apart.high > 3.0, "{apart:?}");
        assert!(bootstrap.under(Design::Independent, &[&a, &b], difference).is_some());
        assert_eq!(bootstrap.under(Design::Independent, &[&a, &b[..2]], difference), None);
    }

    #[test]
    fn a_cell_without_values_in_some_blocks_has_the_medians_of_the_others() {
        let all: Vec<(usize, f64)> = (0..8).map(|block| (block, block as f64)).collect();
        let some = all[..4].to_vec();
        let mut medians = Vec::new();
        Bootstrap::new(1).medians(8, &[all.clone(), some], |both| medians.push((both[0], both[1])));
        let (first, second): (Vec<_>, Vec<_>) = medians.into_iter().unzip();
        let values: Vec<f64> = all.iter().map(|(_, value)| *value).collect();
        assert_eq!(Distribution::of(first), Bootstrap::new(1).distribution(&[&values], |medians| medians[0]));
        assert!(second.iter().all(|median| median.is_nan() || *median <= 3.0));
        // (4/8)^8 of the resamples have none of its blocks.
        let share = second.iter().filter(|median| median.is_nan()).count() as f64 / RESAMPLES as f64;
        assert!((share - 0.5_f64.powi(8)).abs() < 0.004, "{share}");
    }

    #[test]
    fn two_values_or_a_division_by_zero_give_no_interval() {
        assert_eq!(Bootstrap::new(1).distribution(&[&[1.0, 2.0]], |m| m[0]), None);
        assert_eq!(Bootstrap::new(1).distribution(&[&[1.0; 5], &[0.0; 5]], ratio), None);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval_and_another_one_does_not() {
        let values: Vec<f64> = (0..15).map(|i| f64::from((i * 7) % 15)).collect();
        let with = |seed| Bootstrap::new(seed).distribution(&[&values], |m| m[0]);
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }
}
