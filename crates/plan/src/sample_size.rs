//! The number of blocks that a study needs before its comparisons can reach significance.
//!
//! Two cells are compared by the two-sided Wilcoxon signed-rank test (Wilcoxon 1945) on the differences within n
//! blocks. Under the null hypothesis each difference is positive or negative with probability 1/2, independently. The
//! most extreme outcome, all n differences of one sign, thus has probability 2 / 2^n, and no p value of the exact
//! test is smaller. Holm's procedure (Holm 1979) over m comparisons rejects its first hypothesis only if the smallest
//! p is at most 0.045 / m: at the end of a run, tests have a level of 4.5 % (docs/statistics.md). With 2^(1 - n) >
//! 0.045 / m nothing can ever be significant, however large the effect. Hence
//!
//! ```text
//! n >= 1 + log2(m / 0.045) = 1 + log2(200 m / 9)
//! ```
//!
//! This number is necessary, not sufficient: it makes verdicts possible, and power grows with every further block.

/// The fewest blocks with which `comparisons` comparisons under Holm's correction can reach significance at 4.5 %; 0
/// without comparisons.
#[must_use]
pub fn blocks_for_significance(comparisons: u32) -> u32 {
    if comparisons == 0 {
        return 0;
    }
    // The smallest n with 2^(n - 1) >= 200 m / 9, in whole numbers, so that no rounding decides.
    1 + (200 * u64::from(comparisons)).div_ceil(9).next_power_of_two().trailing_zeros()
}

/// The minimum and maximum number of blocks of a plan.
///
/// The minimum is raised to the number that significance needs, but never above the maximum, which the author or user
/// chose (a `smoke` preset has three blocks). With fewer blocks than needed the statistics give no verdicts and say
/// why.
pub(crate) fn blocks(min: u32, max: u32, comparisons: u32) -> (u32, u32) {
    (min.max(blocks_for_significance(comparisons)).min(max), max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_is_the_smallest_whose_best_p_value_survives_holm() {
        let significant = |n: u32, m: u32| 2f64.powi(1 - n as i32) <= 0.045 / f64::from(m);
        for m in 1..2000 {
            let n = blocks_for_significance(m);
            assert!(significant(n, m) && !significant(n - 1, m), "{n} blocks for {m} comparisons");
        }
        assert_eq!([1, 8, 120].map(blocks_for_significance), [6, 9, 13]);
    }

    #[test]
    fn a_maximum_below_the_significance_minimum_is_kept() {
        assert_eq!(blocks(10, 30, 120), (13, 30));
        assert_eq!(blocks(3, 3, 120), (3, 3));
        assert_eq!(blocks(10, 30, 0), (10, 30));
    }
}
