//! Change points in a sequence of values, for the history of a metric over runs.
//!
//! The test is that of Pettitt (1979), "A non-parametric approach to the change-point problem": it compares the ranks
//! before and after each place, so that single outliers and skewed noise do not matter. Its P value comes from random
//! permutations of the values instead of Pettitt's approximation, which is poor for short sequences. Several changes
//! are found by binary segmentation (Vostrikova 1981): each side of a change is tested by itself, until no change is
//! significant. The test assumes that values without a change are exchangeable; a slow drift shows as a change.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

use crate::quantile;
use crate::ranks;

/// Permutations of a test: the smallest P value is 1 / 10,000.
const PERMUTATIONS: u32 = 9999;

/// The level of each test.
pub const ALPHA: f64 = 0.05;

/// The fewest values of a sequence with a significant change: of fewer, too few orders exist.
pub const FEWEST: usize = 8;

/// A change between two values of a sequence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ChangePoint {
    /// The place of the first value after the change.
    pub at: usize,
    /// The median of the segment before the change, up to the previous change.
    pub before: f64,
    /// The median of the segment after the change, up to the next change.
    pub after: f64,
    /// P value of the test.
    pub p: f64,
}

/// The changes of a sequence, in its order. The same seed gives the same result.
#[must_use]
pub fn change_points(values: &[f64], seed: u64) -> Vec<ChangePoint> {
    let mut found = Vec::new();
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    split(values, 0, &mut random, &mut found);
    found.sort_unstable_by_key(|(at, _)| *at);
    let places: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
    let median = |from: usize, to: usize| quantile::median(&values[from..to]).unwrap_or(f64::NAN);
    let point = |(number, (at, p)): (usize, (usize, f64))| {
        let from = if number == 0 { 0 } else { places[number - 1] };
        let to = places.get(number + 1).copied().unwrap_or(values.len());
        ChangePoint { at, before: median(from, at), after: median(at, to), p }
    };
    found.into_iter().enumerate().map(point).collect()
}

fn split(values: &[f64], offset: usize, random: &mut ChaCha8Rng, found: &mut Vec<(usize, f64)>) {
    if values.len() < FEWEST {
        return;
    }
    let mut ranks = ranks::doubled(values);
    let statistic = distances(&ranks).max().unwrap_or(0);
    let at = place(values, &ranks, statistic);
    let mut as_large = 0_u32;
    for _ in 0..PERMUTATIONS {
        ranks.shuffle(random);
        as_large += u32::from(distances(&ranks).max() >= Some(statistic));
    }
    let p = f64::from(as_large + 1) / f64::from(PERMUTATIONS + 1);
    if p > ALPHA {
        return;
    }
    found.push((offset + at, p));
    split(&values[..at], offset, random, found);
    split(&values[at..], offset + at, random, found);
}

/// For each place between two values, the distance of the sum of the ranks before it from its expectation: the largest
/// is Pettitt's statistic. `ranks` are doubled.
fn distances(ranks: &[usize]) -> impl Iterator<Item = u64> {
    let n = ranks.len() as i64;
    (1..n).zip(ranks).scan(0, move |sum, (count, rank)| {
        *sum += *rank as i64;
        Some((*sum - count * (n + 1)).unsigned_abs())
    })
}

/// The first place after the change: where the statistic is largest. Neighbours of the change often have the same
/// statistic in short sequences; then where the values are nearest to the medians of their sides.
fn place(values: &[f64], ranks: &[usize], statistic: u64) -> usize {
    let spread = |side: &[f64]| {
        let median = quantile::median(side).unwrap_or(f64::NAN);
        side.iter().map(|value| (value - median).abs()).sum::<f64>()
    };
    let places = (1..).zip(distances(ranks)).filter(|(_, distance)| *distance == statistic).map(|(at, _)| at);
    let of = |at: &usize| spread(&values[..*at]) + spread(&values[*at..]);
    places.min_by(|one, other| of(one).total_cmp(&of(other))).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values around a level, with reproducible noise of 2 %.
    fn around(level: f64, count: u64, seed: u64) -> Vec<f64> {
        use rand::Rng;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        (0..count).map(|_| level * (1.0 + 0.02 * (random.random::<f64>() - 0.5))).collect()
    }

    /// Flows of the Nile at Aswan from 1871 to 1970 in 10^8 m³ (Cobb 1978), the usual example of a change: after 1898.
    /// The statistic is that of Pettitt's definition, a sum of signs over all pairs of values.
    #[test]
    fn the_change_of_the_nile_is_after_1898() {
        const NILE: [f64; 100] = [
            1120., 1160., 963., 1210., 1160., 1160., 813., 1230., 1370., 1140., 995., 935., 1110., 994., 1020., 960.,
            1180., 799., 958., 1140., 1100., 1210., 1150., 1250., 1260., 1220., 1030., 1100., 774., 840., 874., 694.,
            940., 833., 701., 916., 692., 1020., 1050., 969., 831., 726., 456., 824., 702., 1120., 1100., 832., 764.,
            821., 768., 845., 864., 862., 698., 845., 744., 796., 1040., 759., 781., 865., 845., 944., 984., 897.,
            822., 1010., 771., 676., 649., 846., 812., 742., 801., 1040., 860., 874., 848., 890., 744., 749., 838.,
            1050., 918., 986., 797., 923., 975., 815., 1020., 906., 901., 1170., 912., 746., 919., 718., 714., 740.,
        ];
        let sign = |a: f64, b: f64| if a == b { 0.0 } else { (a - b).signum() };
        let pairs = NILE[..28].iter().flat_map(|before| NILE[28..].iter().map(|after| sign(*before, *after)));
        assert_eq!(distances(&ranks::doubled(&NILE)).max().unwrap() as f64, pairs.sum::<f64>());
        let found = change_points(&NILE, 1);
        assert_eq!((found[0].at, found[0].p), (28, 1e-4));
        assert_eq!((found[0].before, found[0].after > 800.0 && found[0].after < 900.0), (1130.0, true));
    }

    #[test]
    fn several_changes_are_found_with_the_medians_around_them() {
        let values = [around(100.0, 12, 1), around(110.0, 10, 2), around(80.0, 9, 3)].concat();
        let found = change_points(&values, 1);
        assert_eq!(found.iter().map(|point| point.at).collect::<Vec<_>>(), [12, 22]);
        assert!((found[0].after / found[0].before - 1.1).abs() < 0.01, "{found:?}");
        assert!((found[1].after / found[1].before - 80.0 / 110.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_value_in_the_middle_of_all_ranks_stays_on_its_side() {
        // The fifth value has the middle rank, so that the statistic is the same before and after it.
        let found = change_points(&[1.00, 0.97, 1.01, 0.99, 1.04, 14.0, 13.5, 13.8, 13.6], 1);
        assert_eq!(found.iter().map(|point| point.at).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn noise_and_outliers_are_no_change() {
        let mut quiet = around(100.0, 30, 4);
        assert_eq!(change_points(&quiet, 1), []);
        quiet[29] = 1000.0;
        assert_eq!(change_points(&quiet, 1), []);
        assert_eq!(change_points(&[1.0; 20], 1), []);
    }

    /// Of 200 sequences without a change, about one in twenty has one by chance, and its sides are tested again.
    #[test]
    fn the_rate_of_false_changes_is_the_level() {
        let wrong = (0..200).filter(|seed| !change_points(&around(1.0, 10, 100 + seed), 1).is_empty()).count();
        assert!((2..=20).contains(&wrong), "{wrong} of 200");
    }

    #[test]
    fn a_short_sequence_has_no_change_and_the_shortest_one_can_have_one() {
        let step = |n: usize| (0..n).map(move |i| if i < n / 2 { 1.0 + i as f64 / 1e3 } else { 2.0 + i as f64 / 1e3 });
        assert_eq!(change_points(&step(FEWEST - 1).collect::<Vec<_>>(), 1), []);
        assert_eq!(change_points(&step(FEWEST).collect::<Vec<_>>(), 1).len(), 1);
    }
}
