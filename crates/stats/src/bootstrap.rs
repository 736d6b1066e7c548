//! Bootstrap intervals over trials: Efron (1979), "Bootstrap methods: another look at the jackknife"; Efron and
//! Tibshirani (1993), "An introduction to the bootstrap", chapter 13.
//!
//! Intervals are percentile intervals for three reasons. The acceleration of a BCa interval comes from the jackknife,
//! which is inconsistent for the median (Miller 1974; Efron 1982). Percentile intervals respect transformations, so
//! that the interval of a/b is the reciprocal of that of b/a. And they never leave the range of the data. Simulation
//! measures their coverage at 10 to 30 blocks (`docs/statistics.md`).
//!
//! Blocks are resampled, all cells of a block together, which preserves their common variation. Without blocks, each
//! cell is resampled by itself. The distribution of an effect of one or two medians is computed exactly
//! ([`crate::exact`]); that of more medians, or of many values, comes from random resamples, which equal numbers of
//! blocks share.

use std::collections::BTreeMap;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wirelab_model::table::Design;

use crate::analysis::Interval;
use crate::exact::{self, Pairs};

/// Random resamples per interval. The choice of the seed then moves the ends of an interval by about 0.1 % of the
/// effect or less, if its standard error is at most 5 %.
pub const RESAMPLES: usize = 20_000;

/// The largest number of random draws for one cell; longer lists of values have fewer resamples.
const MOST_DRAWS: usize = 20_000_000;

/// The smallest number of resamples.
const FEWEST_RESAMPLES: usize = 4000;

/// The smallest number of values for an interval. With fewer, an interval covers the truth in less than 93 % of cases.
pub const MIN_VALUES: usize = 5;

/// The source of resamples: the same seed gives the same intervals.
#[derive(Debug, Clone)]
pub struct Bootstrap {
    seed: u64,
    exact: Pairs,
    /// By number of resamples, number of blocks and place of the cell (0 if all cells share their blocks): for each
    /// resample, the frequency of each block.
    counts: BTreeMap<(usize, usize, usize), Vec<u16>>,
}

impl Bootstrap {
    /// A source of resamples that depend only on the seed and the number of blocks.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self { seed, exact: Pairs::new(), counts: BTreeMap::new() }
    }

    /// The number of resamples of lists of up to `n` values.
    #[must_use]
    pub fn resamples(n: usize) -> usize {
        RESAMPLES.min((MOST_DRAWS / n.max(1)).max(FEWEST_RESAMPLES))
    }

    /// The bootstrap distribution of an effect of the medians of several cells.
    ///
    /// `cells` has one list per cell, of equal length and in the same order of blocks. `None` for fewer than
    /// [`MIN_VALUES`] blocks, or if the effect of some resample is not finite (division by a median of 0).
    pub fn distribution(&mut self, cells: &[&[f64]], effect: impl Fn(&[f64]) -> f64) -> Option<Distribution> {
        self.under(Design::Blocks, cells, effect)
    }

    /// The same for a design. Without blocks each cell is resampled by itself, and lists may differ in length; `None`
    /// if a list has fewer than [`MIN_VALUES`].
    pub fn under(&mut self, design: Design, cells: &[&[f64]], effect: impl Fn(&[f64]) -> f64) -> Option<Distribution> {
        let fits = |values: &&[f64]| (MIN_VALUES..=usize::from(u16::MAX)).contains(&values.len());
        if cells.is_empty() || !cells.iter().all(fits) {
            return None;
        }
        match (cells, design) {
            ([one], _) => {
                return Distribution::weighted(exact::median(one).map(|(median, mass)| (effect(&[median]), mass)));
            }
            ([a, b], Design::Blocks) if a.len() <= exact::MOST_BLOCKS => {
                let medians = self.exact.medians(a, b);
                return Distribution::weighted(medians.map(|(medians, mass)| (effect(&medians), mass)));
            }
            ([a, b], Design::Independent) if a.len() * b.len() <= exact::MOST_PAIRS => {
                let medians = exact::independent(a, b);
                return Distribution::weighted(medians.map(|(medians, mass)| (effect(&medians), mass)));
            }
            _ => {}
        }
        let place_of = |place: usize| if design == Design::Blocks { 0 } else { place };
        let resamples = Self::resamples(cells.iter().map(|values| values.len()).max()?);
        for (place, values) in cells.iter().enumerate() {
            self.counts(resamples, values.len(), place_of(place));
        }
        let orders: Vec<_> = cells.iter().map(|values| Order::of(values)).collect();
        let of = |(place, values): (usize, &&[f64])| &self.counts[&(resamples, values.len(), place_of(place))];
        let counts: Vec<_> = cells.iter().enumerate().map(of).collect();
        let mut medians = vec![0.0; cells.len()];
        let mut effects = Vec::with_capacity(resamples);
        for resample in 0..resamples {
            for ((median, order), counts) in medians.iter_mut().zip(&orders).zip(&counts) {
                let n = order.0.len();
                *median = order.median(&counts[resample * n..(resample + 1) * n]);
            }
            effects.push(effect(&medians));
        }
        Distribution::of(effects)
    }

    /// Calls `each` with the medians of several cells for each resample of `n` blocks. `cells` has a list per cell of
    /// values with the number of their block. In a resample without any of its blocks, a cell's median is NaN.
    pub fn medians(&mut self, n: usize, cells: &[Vec<(usize, f64)>], mut each: impl FnMut(&[f64])) {
        if n < MIN_VALUES || n > usize::from(u16::MAX) {
            return;
        }
        let orders: Vec<_> = cells.iter().map(|values| Order::of_blocks(values.clone())).collect();
        let mut medians = vec![0.0; cells.len()];
        for counts in self.counts(Self::resamples(n), n, 0).chunks_exact(n) {
            for (median, order) in medians.iter_mut().zip(&orders) {
                *median = order.median(counts);
            }
            each(&medians);
        }
    }

    fn counts(&mut self, resamples: usize, n: usize, place: usize) -> &[u16] {
        self.counts.entry((resamples, n, place)).or_insert_with(|| {
            let mut random = ChaCha8Rng::seed_from_u64(self.seed);
            random.set_stream(n as u64 | (place as u64) << 32);
            let mut counts = vec![0; resamples * n];
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

/// The possible effects in ascending order, each with the probability of an effect below it plus half of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Distribution(Vec<(f64, f64)>);

/// Probabilities below this are rounding errors.
const ROUNDING: f64 = 1e-12;

impl Distribution {
    /// From equally likely effects. `None` if an effect is not finite, or without effects.
    #[must_use]
    pub fn of(effects: Vec<f64>) -> Option<Self> {
        let mass = 1.0 / effects.len() as f64;
        Self::weighted(effects.into_iter().map(|effect| (effect, mass)))
    }

    /// From effects with their probabilities. `None` if an effect is not finite, or without effects.
    fn weighted(effects: impl Iterator<Item = (f64, f64)>) -> Option<Self> {
        let mut effects: Vec<_> = effects.filter(|(_, mass)| *mass > ROUNDING).collect();
        effects.sort_unstable_by(|(a, _), (b, _)| a.total_cmp(b));
        // Infinities and NaN are at the ends of the total order.
        if !(effects.first()?.0.is_finite() && effects.last()?.0.is_finite()) {
            return None;
        }
        let mut below = 0.0;
        for (_, mass) in &mut effects {
            let own = *mass;
            *mass = below + own / 2.0;
            below += own;
        }
        Some(Self(effects))
    }

    /// The percentile interval of a nominal coverage, for example 0.95, interpolated between neighbouring effects.
    #[must_use]
    pub fn interval(&self, confidence: f64) -> Interval {
        let tail = (1.0 - confidence) / 2.0;
        Interval { low: self.quantile(tail), high: self.quantile(1.0 - tail), confidence }
    }

    fn quantile(&self, q: f64) -> f64 {
        let next = self.0.partition_point(|(_, below)| *below < q);
        let (Some(above), Some(below)) = (self.0.get(next), next.checked_sub(1).map(|place| self.0[place])) else {
            return self.0[next.min(self.0.len() - 1)].0;
        };
        below.0 + (above.0 - below.0) * (q - below.1) / (above.1 - below.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantile;

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

    /// Efron (1982), "The jackknife, the bootstrap and other resampling plans", section 10.3: the bootstrap median of
    /// an odd sample is its k-th smallest value with a binomial probability. For 9 values P(median = smallest) =
    /// P(Binomial(9, 1/9) >= 5).
    #[test]
    fn the_distribution_of_the_median_is_the_exact_one() {
        let values: Vec<f64> = (1..=9).map(f64::from).collect();
        let distribution = Bootstrap::new(1).distribution(&[&values], |m| m[0]).unwrap();
        // 1 - pbinom(4, 9, k/9) in R, or scipy.stats.binom.sf(4, 9, k / 9), k = 1 to 8.
        let cumulative = [0.00145, 0.03037, 0.14485, 0.36551, 0.63449, 0.85515, 0.96963, 0.99855];
        for (k, exact) in (1..).zip(cumulative) {
            let below = if k == 1 { 0.0 } else { cumulative[k - 2] };
            let (median, share) = distribution.0[k - 1];
            assert_eq!(median, k as f64);
            assert!((share - f64::midpoint(below, exact)).abs() < 1e-5, "{median}: {share}");
        }
    }

    #[test]
    fn the_interval_of_a_ratio_is_the_reciprocal_of_the_reversed_one() {
        let a = [3.0, 4.0, 5.0, 4.5, 3.2, 4.8, 3.9, 4.1, 4.2, 3.7, 4.4, 3.5, 4.6];
        let b = [2.0, 2.1, 1.9, 2.4, 2.2, 2.0, 2.3, 1.8, 2.1, 2.2, 2.0, 2.1, 1.9];
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
        let mut whole = Vec::new();
        Bootstrap::new(1).medians(8, &[values.iter().copied().enumerate().collect()], |medians| whole.push(medians[0]));
        assert_eq!(first, whole);
        assert!(second.iter().all(|median| median.is_nan() || *median <= 3.0));
        // (4/8)^8 of the resamples have none of its blocks.
        let share = second.iter().filter(|median| median.is_nan()).count() as f64 / RESAMPLES as f64;
        assert!((share - 0.5_f64.powi(8)).abs() < 0.002, "{share}");
    }

    #[test]
    fn four_values_or_a_division_by_zero_give_no_interval() {
        assert_eq!(Bootstrap::new(1).distribution(&[&[1.0, 2.0, 3.0, 4.0]], |m| m[0]), None);
        assert_eq!(Bootstrap::new(1).distribution(&[&[1.0; 5], &[0.0; 5]], ratio), None);
    }

    #[test]
    fn the_seed_decides_only_what_is_not_exact() {
        let values = |step: u32| (0..14).map(|i| 1000.0 + f64::from((i * step) % 137)).collect::<Vec<_>>();
        let cells = [values(71), values(53), values(29), values(11)];
        let lists: Vec<&[f64]> = cells.iter().map(Vec::as_slice).collect();
        let two = |seed| Bootstrap::new(seed).distribution(&lists[..2], ratio).unwrap();
        assert_eq!(two(1), two(2));
        let four =
            |seed| Bootstrap::new(seed).distribution(&lists, |m| m[0] / m[1] / m[2] * m[3]).unwrap().interval(0.95);
        assert_eq!(four(1), four(1));
        for seed in 2..8 {
            let (one, other) = (four(1), four(seed));
            assert!((one.low / other.low - 1.0).abs() < 0.002, "{one:?} {other:?}");
            assert!((one.high / other.high - 1.0).abs() < 0.002, "{one:?} {other:?}");
        }
    }

    #[test]
    fn random_resamples_approach_the_exact_distribution() {
        let values = |step: u32| (0..13).map(|i| 1000.0 + f64::from((i * step) % 137)).collect::<Vec<_>>();
        let (cell, baseline) = (values(71), values(53));
        let exact = Bootstrap::new(1).distribution(&[&cell, &baseline], ratio).unwrap().interval(0.95);
        let numbered = |values: &[f64]| values.iter().copied().enumerate().collect::<Vec<_>>();
        let mut resampled = Vec::new();
        let cells = [numbered(&cell), numbered(&baseline)];
        Bootstrap::new(1).medians(13, &cells, |medians| resampled.push(ratio(medians)));
        let random = Distribution::of(resampled).unwrap().interval(0.95);
        assert!((exact.low / random.low - 1.0).abs() < 0.002, "{exact:?} {random:?}");
        assert!((exact.high / random.high - 1.0).abs() < 0.002, "{exact:?} {random:?}");
    }

    #[test]
    fn the_interval_of_five_values_is_their_range() {
        let interval = Bootstrap::new(1).distribution(&[&[3.0, 1.0, 4.0, 2.0, 9.0]], |m| m[0]).unwrap().interval(0.95);
        assert_eq!((interval.low, interval.high), (1.0, 9.0));
    }

    #[test]
    fn long_lists_have_fewer_resamples() {
        assert_eq!([10, 1000, 2000, 100_000].map(Bootstrap::resamples), [20_000, 20_000, 10_000, 4000]);
    }
}
