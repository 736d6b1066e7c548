//! Trends of values over the number of their trial.
//!
//! Mann (1945), "Nonparametric tests against trend", and Kendall (1938), "A new measure of rank correlation"; the slope
//! after Theil (1950) and Sen (1968). Both use only order and medians, so that a few slow trials are no trend.

use statrs::distribution::{ContinuousCDF, Normal};

use crate::quantile;

/// Up to this many values without ties the P value is exact; otherwise a normal approximation.
const EXACT_UP_TO: usize = 50;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Kendall's S: pairs that rise minus pairs that fall.
    pub s: i64,
    /// The P value of no trend, two-sided.
    pub p: f64,
    /// The median slope of all pairs: change of y per unit of x.
    pub slope: f64,
}

/// The trend of points (x, y) in ascending order of distinct x. `None` for fewer than three points.
#[must_use]
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 3 {
        return None;
    }
    let mut s = 0;
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (i, (x0, y0)) in points.iter().enumerate() {
        for (x1, y1) in &points[i + 1..] {
            s += i64::from(y1 > y0) - i64::from(y1 < y0);
            slopes.push((y1 - y0) / (x1 - x0));
        }
    }
    let ties = tie_sizes(points);
    let p = if ties.is_empty() && n <= EXACT_UP_TO { exact_p(n, s) } else { approximate_p(n, s, &ties) };
    Some(Trend { s, p, slope: quantile::median(&slopes)? })
}

/// The sizes of the groups of equal values, from two on.
fn tie_sizes(points: &[(f64, f64)]) -> Vec<usize> {
    let mut values: Vec<f64> = points.iter().map(|(_, y)| *y).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.chunk_by(|a, b| a == b).map(<[f64]>::len).filter(|size| *size > 1).collect()
}

/// Every order of the values is equally likely; S is the number of pairs less twice the inversions, whose distribution
/// is built up by inserting one value after the other.
fn exact_p(n: usize, s: i64) -> f64 {
    let pairs = n * (n - 1) / 2;
    let mut probability = vec![0.0; pairs + 1];
    probability[0] = 1.0;
    for inserted in 1..n {
        let before = probability.clone();
        for (inversions, p) in probability.iter_mut().enumerate().take(inserted * (inserted + 1) / 2 + 1) {
            let ways = &before[inversions.saturating_sub(inserted)..=inversions];
            *p = ways.iter().sum::<f64>() / (inserted + 1) as f64;
        }
    }
    let fewest = (pairs - s.unsigned_abs() as usize) / 2;
    (2.0 * probability[..=fewest].iter().sum::<f64>()).min(1.0)
}

/// With the variance corrected for ties, and for continuity (Kendall 1975, "Rank correlation methods").
fn approximate_p(n: usize, s: i64, ties: &[usize]) -> f64 {
    let term = |t: usize| (t * (t - 1) * (2 * t + 5)) as f64;
    let variance = (term(n) - ties.iter().copied().map(term).sum::<f64>()) / 18.0;
    if s == 0 || variance <= 0.0 {
        return 1.0;
    }
    let z = (s.unsigned_abs() as f64 - 1.0) / variance.sqrt();
    (2.0 * Normal::standard().sf(z)).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(values: &[f64]) -> Trend {
        let points: Vec<_> = values.iter().enumerate().map(|(x, y)| (x as f64, *y)).collect();
        trend(&points).unwrap()
    }

    /// `scipy.stats.kendalltau(range(n), y, method="exact")` and `scipy.stats.theilslopes`.
    #[test]
    fn values_without_ties_give_the_exact_p_values_of_scipy() {
        let rising = of(&[5.0, 5.6, 5.4, 6.1, 6.0, 6.9, 6.3, 7.2, 7.0, 7.9]);
        assert!((rising.p - 0.000_357_694_003_527_336_9).abs() < 1e-12, "{rising:?}");
        let weak = of(&[3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0, 5.5, 3.5, 8.0, 9.5, 7.0]);
        assert!((weak.p - 0.031_050_242_838_437_284).abs() < 1e-12, "{weak:?}");
        assert_eq!(weak.slope, 0.5);
    }

    /// Values with ties as in the Mann-Kendall example of Gilbert (1987), "Statistical methods for environmental
    /// pollution monitoring"; S, variance and P computed from the formula with NumPy and `scipy.stats.norm.sf`.
    #[test]
    fn ties_give_the_corrected_normal_approximation() {
        let tied = of(&[23.0, 24.0, 29.0, 6.0, 29.0, 24.0, 5.0, 6.0, 28.0, 30.0, 31.0, 30.0]);
        assert_eq!(tied.s, 24);
        assert!((tied.p - 0.111_336_745_102_204_12).abs() < 1e-9, "{tied:?}");
    }

    #[test]
    fn constant_values_have_no_trend() {
        assert_eq!(of(&[2.0; 20]), Trend { s: 0, p: 1.0, slope: 0.0 });
    }
}
