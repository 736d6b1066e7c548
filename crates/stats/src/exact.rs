//! The exact bootstrap distribution of the medians of one cell, and of two cells with common blocks.
//!
//! With an odd number of draws the median of a resample is one of the values: the i-th smallest or a smaller one if at
//! least half of the draws fall among the i smallest, a binomial probability (Efron 1982, "The jackknife, the bootstrap
//! and other resampling plans", section 10.3). For two cells the draws fall into four kinds of blocks: among the i
//! smallest of the first cell, the j smallest of the second, both, or neither, a multinomial probability. An even
//! number of blocks is resampled with one draw more; the median of an even number of draws would be the mean of two
//! values.

use std::collections::BTreeMap;

use statrs::distribution::{Binomial, DiscreteCDF};

/// The largest number of blocks of two cells.
pub const MOST_BLOCKS: usize = 40;

/// The largest number of pairs of values of two cells without blocks.
pub const MOST_PAIRS: usize = 250_000;

/// The draws of a resample of `n` values: an odd number.
const fn draws(n: usize) -> usize {
    if n.is_multiple_of(2) { n + 1 } else { n }
}

/// The values as possible medians of a resample, with their probabilities.
pub fn median(values: &[f64]) -> impl Iterator<Item = (f64, f64)> + use<> {
    let n = values.len();
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let draws = draws(n) as u64;
    let up_to = move |i: usize| {
        // At least half of the draws fall among the i smallest values.
        Binomial::new(i as f64 / n as f64, draws).map_or(0.0, |hits| hits.sf(draws / 2))
    };
    sorted.into_iter().enumerate().map(move |(i, value)| (value, up_to(i + 1) - up_to(i)))
}

/// The medians of two cells that are resampled each by itself.
pub fn independent(first: &[f64], second: &[f64]) -> impl Iterator<Item = ([f64; 2], f64)> + use<> {
    let second: Vec<_> = median(second).collect();
    median(first).flat_map(move |(a, p)| second.clone().into_iter().map(move |(b, q)| ([a, b], p * q)))
}

/// The probabilities for two cells with common blocks.
#[derive(Debug, Clone, Default)]
pub struct Pairs {
    /// By number of blocks, smallest values of the first cell, of the second, and their common blocks: the probability
    /// that both medians are among them.
    joint: BTreeMap<[usize; 4], f64>,
}

impl Pairs {
    pub const fn new() -> Self {
        Self { joint: BTreeMap::new() }
    }

    /// The possible medians of two cells, whose values are in the same order of blocks, with their probabilities.
    pub fn medians(&mut self, first: &[f64], second: &[f64]) -> impl Iterator<Item = ([f64; 2], f64)> + use<> {
        let n = first.len();
        let (by_first, by_second) = (order(first), order(second));
        let mut place = vec![0; n];
        by_second.iter().enumerate().for_each(|(rank, block)| place[*block] = rank);
        // The row above: the probabilities for one value less of the first cell.
        let mut above = vec![0.0; n + 1];
        let mut found = Vec::with_capacity(n * n);
        let mut common = vec![0; n + 1];
        for i in 1..=n {
            let block = by_first[i - 1];
            (place[block] + 1..=n).for_each(|j| common[j] += 1);
            let row: Vec<f64> = (0..=n).map(|j| if j == 0 { 0.0 } else { self.joint([n, i, j, common[j]]) }).collect();
            for j in 1..=n {
                let mass = row[j] - row[j - 1] - above[j] + above[j - 1];
                // Rounding may leave a negative rest.
                found.push(([first[block], second[by_second[j - 1]]], mass.max(0.0)));
            }
            above = row;
        }
        found.into_iter()
    }

    fn joint(&mut self, key: [usize; 4]) -> f64 {
        *self.joint.entry(key).or_insert_with(|| joint(key))
    }
}

/// The blocks in ascending order of their values.
fn order(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    order
}

/// The probability that at least half of the draws fall among `i` of the `n` blocks, and at least half among `j` of
/// them, if `both` blocks are common to these.
fn joint([n, i, j, both]: [usize; 4]) -> f64 {
    let draws = draws(n);
    let half = draws / 2 + 1;
    let share = |blocks: usize| powers(blocks as f64 / n as f64, draws);
    let (p_both, p_first, p_second) = (share(both), share(i - both), share(j - both));
    let p_neither = share(n + both - i - j);
    let choose = binomials(draws);
    let mut sum = 0.0;
    for common in 0..=draws {
        let least = half.saturating_sub(common);
        let rest = draws - common;
        let mut inner = 0.0;
        for first in least..=rest.saturating_sub(least) {
            let left = rest - first;
            let of_second =
                (least..=left).map(|second| choose[left][second] * p_second[second] * p_neither[left - second]);
            inner += choose[rest][first] * p_first[first] * of_second.sum::<f64>();
        }
        sum += choose[draws][common] * p_both[common] * inner;
    }
    sum
}

fn powers(base: f64, up_to: usize) -> Vec<f64> {
    std::iter::successors(Some(1.0), |power| Some(power * base)).take(up_to + 1).collect()
}

/// The binomial coefficients up to `n`.
fn binomials(n: usize) -> Vec<Vec<f64>> {
    let mut rows = vec![vec![1.0]];
    for size in 1..=n {
        let last = &rows[size - 1];
        let inner = last.windows(2).map(|pair| pair[0] + pair[1]);
        rows.push(std::iter::once(1.0).chain(inner).chain([1.0]).collect());
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All 5^5 resamples of five blocks.
    #[test]
    fn the_probabilities_of_two_medians_are_those_of_full_enumeration() {
        let (first, second) = ([3.0, 1.0, 4.0, 2.0, 5.0], [10.0, 30.0, 20.0, 50.0, 40.0]);
        let mut counts: BTreeMap<[u64; 2], f64> = BTreeMap::new();
        let middle = |values: &[f64; 5], resample: usize| {
            let mut drawn: Vec<f64> = (0..5).map(|place| values[resample / 5_usize.pow(place) % 5]).collect();
            drawn.sort_by(f64::total_cmp);
            drawn[2] as u64
        };
        for resample in 0..3125 {
            *counts.entry([middle(&first, resample), middle(&second, resample)]).or_default() += 1.0 / 3125.0;
        }
        for ([a, b], mass) in Pairs::new().medians(&first, &second) {
            let expected = counts.get(&[a as u64, b as u64]).copied().unwrap_or_default();
            assert!((mass - expected).abs() < 1e-12, "{a} {b}: {mass}, {expected}");
        }
    }

    #[test]
    fn probabilities_add_up_to_one() {
        let values = |step: usize, n: usize| (0..n).map(|i| ((i * step) % 41) as f64).collect::<Vec<_>>();
        for n in [5, 6, 10, 21, 40] {
            let (first, second) = (values(7, n), values(17, n));
            let all: f64 = Pairs::new().medians(&first, &second).map(|(_, mass)| mass).sum();
            let one: f64 = median(&first).map(|(_, mass)| mass).sum();
            assert!((all - 1.0).abs() < 1e-9 && (one - 1.0).abs() < 1e-12, "{n}: {all} {one}");
        }
    }
}
