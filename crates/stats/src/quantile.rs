//! Quantiles, in two of the nine definitions of Hyndman and Fan (1996), "Sample quantiles in statistical packages".
//!
//! Percentiles of requests within a trial use type 1 (nearest rank). The result is the time of a real request, an upper
//! percentile is never interpolated across the gaps of a tail, and HDR histograms use the same definition. Medians and
//! quartiles over trials use type 7 (the default of R and NumPy): a cell has a few tens of trials, and the mean of the
//! middle two is the better median.

/// The nearest-rank quantile (type 1) of sorted values: the smallest value that bounds at least the share `q` of all
/// values.
///
/// `None` without values. `q` is within 0 to 1.
#[must_use]
pub fn nearest_rank(sorted: &[u64], q: f64) -> Option<u64> {
    sorted.get(rank(q, sorted.len() as u64) as usize - 1).copied()
}

/// The rank of the nearest-rank quantile `q` of `count` values: 1 for the smallest.
#[must_use]
pub fn rank(q: f64, count: u64) -> u64 {
    ((without_slip(q) * count as f64).ceil() as u64).max(1)
}

/// A slightly smaller quantile, which corrects rounding: otherwise 0.07 * 100 would be 7.000000000000001, and its rank
/// 8.
#[must_use]
pub fn without_slip(q: f64) -> f64 {
    q * (1.0 - 4.0 * f64::EPSILON)
}

/// The linearly interpolated quantile (type 7) of sorted values.
///
/// `None` without values. `q` is within 0 to 1.
#[must_use]
pub fn interpolated(sorted: &[f64], q: f64) -> Option<f64> {
    let place = q * sorted.len().checked_sub(1)? as f64;
    let below = sorted[place.floor() as usize];
    let above = sorted[place.ceil() as usize];
    Some(below + (above - below) * place.fract())
}

/// The median of values in any order: the middle one, or the mean of the middle two.
#[must_use]
pub fn median(values: &[f64]) -> Option<f64> {
    interpolated(&sorted(values), 0.5)
}

/// The values in ascending order.
#[must_use]
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with numpy 2: `np.quantile(values, q, method="inverted_cdf")` and `method="linear"`.
    const REFERENCE: [(f64, u64, f64); 6] =
        [(0.1, 1, 1.9), (0.25, 4, 4.75), (0.5, 11, 13.5), (0.75, 29, 27.25), (0.9, 37, 37.9), (0.99, 46, 45.19)];
    const VALUES: [u64; 10] = [1, 2, 4, 7, 11, 16, 22, 29, 37, 46];

    #[test]
    fn both_types_agree_with_numpy() {
        let floats = VALUES.map(|value| value as f64);
        for (q, type_1, type_7) in REFERENCE {
            assert_eq!(nearest_rank(&VALUES, q), Some(type_1), "type 1 at {q}");
            let got = interpolated(&floats, q).unwrap();
            assert!((got - type_7).abs() < 1e-12, "type 7 at {q}: {got}");
        }
    }

    #[test]
    fn a_rank_does_not_slip_by_rounding() {
        let values: Vec<u64> = (1..=100).collect();
        for percent in 1..=100 {
            assert_eq!(nearest_rank(&values, percent as f64 / 100.0), Some(percent));
        }
    }

    #[test]
    fn no_values_have_no_quantile() {
        assert_eq!(nearest_rank(&[], 0.5), None);
        assert_eq!(interpolated(&[], 0.5), None);
    }
}
