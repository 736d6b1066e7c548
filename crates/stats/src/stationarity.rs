//! Steady state: whether response times change within the measured window.
//!
//! Each trial keeps the median response time of the requests that began in each fifth of its window. Under stationarity
//! no fifth is systematically slower than another, so the trials of a cell are blocks and the fifths are treatments:
//! the test of Friedman (1937), "The use of ranks to avoid the assumption of normality implicit in the analysis of
//! variance", with its chi-square approximation and the correction for ties. The unit of analysis is the trial, so
//! autocorrelation of requests does no harm.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ChiSquared, ContinuousCDF};
use wirelab_model::sample::Sample;

use crate::compare::{ALPHA, MIN_BLOCKS};
use crate::holm::holm;
use crate::{quantile, ranks};

/// The number of parts of a window.
pub const PARTS: usize = 5;

/// The smallest number of requests for the median of a part.
pub(crate) const MIN_REQUESTS: usize = 3;

/// The median response time of successful requests by the fifth of the window in which they began, in nanoseconds.
/// `None` if a fifth has fewer than three of them.
#[must_use]
pub fn profile(samples: &[Sample], window_ns: u64) -> Option<[u64; PARTS]> {
    let mut parts: [Vec<u64>; PARTS] = Default::default();
    for sample in samples.iter().filter(|sample| sample.is_ok()) {
        let part = u128::from(sample.intended_ns) * PARTS as u128 / u128::from(window_ns.max(1));
        parts[(part as usize).min(PARTS - 1)].push(sample.response_ns());
    }
    if parts.iter().any(|part| part.len() < MIN_REQUESTS) {
        return None;
    }
    Some(parts.map(|mut part| {
        part.sort_unstable();
        quantile::nearest_rank(&part, 0.5).unwrap_or_default()
    }))
}

/// The result for the profiles of a cell's trials.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "stationarity", rename_all = "snake_case")]
pub enum Stationarity {
    /// No fifth of the window differs from the others beyond chance and the margin.
    Stationary,
    /// A fifth differs beyond chance and the margin.
    Changes {
        /// The slowest fifth, 0 for the first.
        slowest: usize,
        /// The fastest fifth.
        fastest: usize,
        /// Median over trials of the time in the slowest fifth divided by that in the fastest.
        ratio: f64,
    },
    /// Fewer than ten trials have enough requests in every fifth.
    #[default]
    TooShort,
}

/// The stationarity of each cell from the profiles of its trials. Holm's correction covers the cells; differences up to
/// `margin` (a share) are negligible.
pub(crate) fn of_cells(profiles: &[Vec<[u64; PARTS]>], margin: f64) -> Vec<Stationarity> {
    let tested: Vec<usize> = (0..profiles.len()).filter(|cell| profiles[*cell].len() >= MIN_BLOCKS as usize).collect();
    let corrected = holm(&tested.iter().map(|cell| friedman(&profiles[*cell])).collect::<Vec<_>>());
    let mut found = vec![Stationarity::TooShort; profiles.len()];
    for (cell, p) in tested.into_iter().zip(corrected) {
        found[cell] = match extremes(&profiles[cell]) {
            (slowest, fastest, ratio) if p <= ALPHA && ratio > 1.0 + margin => {
                Stationarity::Changes { slowest, fastest, ratio }
            }
            _ => Stationarity::Stationary,
        };
    }
    found
}

/// The slowest and the fastest part, and the ratio of their response times.
fn extremes(profiles: &[[u64; PARTS]]) -> (usize, usize, f64) {
    let mean_log = |profile: &[u64; PARTS]| profile.iter().map(|ns| (*ns as f64).ln()).sum::<f64>() / PARTS as f64;
    let relative = |part: usize| {
        let logs: Vec<f64> = profiles.iter().map(|profile| (profile[part] as f64).ln() - mean_log(profile)).collect();
        quantile::median(&logs).unwrap_or_default()
    };
    let parts: [f64; PARTS] = std::array::from_fn(relative);
    let by = |a: &usize, b: &usize| parts[*a].total_cmp(&parts[*b]);
    let (slowest, fastest) = ((0..PARTS).max_by(by).unwrap_or(0), (0..PARTS).min_by(by).unwrap_or(0));
    (slowest, fastest, (parts[slowest] - parts[fastest]).exp())
}

/// P value of Friedman's test for equal parts; 1 if all parts of all trials are equal.
fn friedman(profiles: &[[u64; PARTS]]) -> f64 {
    let (n, k) = (profiles.len() as f64, PARTS as f64);
    let mut sums = [0.0; PARTS];
    let mut squares = 0.0;
    for profile in profiles {
        for (sum, doubled) in sums.iter_mut().zip(ranks::doubled(&profile.map(|ns| ns as f64))) {
            let rank = doubled as f64 / 2.0;
            *sum += rank;
            squares += rank * rank;
        }
    }
    let center = n * (k + 1.0) / 2.0;
    let between: f64 = sums.iter().map(|sum| (sum - center).powi(2)).sum();
    let within = squares - n * k * (k + 1.0).powi(2) / 4.0;
    if within <= 0.0 {
        return 1.0;
    }
    let statistic = (k - 1.0) * between / within;
    ChiSquared::new(k - 1.0).map_or(1.0, |chi| chi.sf(statistic))
}

#[cfg(test)]
#[path = "stationarity_tests.rs"]
mod tests;
