//! Intervals of shares: Clopper and Pearson (1934), "The use of confidence or fiducial limits illustrated in the case
//! of the binomial". They cover the true share with at least the stated confidence, for any number of cases.

use statrs::distribution::{Beta, ContinuousCDF};

use crate::analysis::Interval;

/// The interval of a share, from `count` successes in `of` cases; `None` without cases.
#[must_use]
pub fn clopper_pearson(count: u64, of: u64, confidence: f64) -> Option<Interval> {
    if of == 0 || count > of {
        return None;
    }
    let tail = (1.0 - confidence) / 2.0;
    let (count, rest) = (count as f64, (of - count) as f64);
    let quantile = |a: f64, b: f64, at: f64| Beta::new(a, b).ok().map(|beta| beta.inverse_cdf(at));
    let low = if count == 0.0 { 0.0 } else { quantile(count, rest + 1.0, tail)? };
    let high = if rest == 0.0 { 1.0 } else { quantile(count + 1.0, rest, 1.0 - tail)? };
    Some(Interval { low, high, confidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.stats.binomtest(k, n).proportion_ci(0.95, "exact")`.
    #[test]
    fn intervals_are_those_of_scipy() {
        for (count, of, low, high) in [
            (0, 10, 0.0, 0.308_497_102_6),
            (10, 10, 0.691_502_897_4, 1.0),
            (3, 40, 0.015_742_2, 0.203_864_7),
            (158, 8000, 0.016_814_4, 0.023_042_3),
        ] {
            let interval = clopper_pearson(count, of, 0.95).unwrap();
            assert!((interval.low - low).abs() < 1e-6 && (interval.high - high).abs() < 1e-6, "{count}: {interval:?}");
        }
        assert_eq!(clopper_pearson(0, 0, 0.95), None);
    }
}
