//! Tests and intervals that stay valid at every look at a run, for reports before its planned end.
//!
//! Looking after every block and stopping at the first small P value would give noise one chance of a verdict per
//! block. The methods here bound the probability of a false verdict at *any* look (Ramdas, Grünwald, Vovk and Shafer
//! 2023, "Game-theoretic statistics and safe anytime-valid inference").
//!
//! Without an effect, the random order within a block makes either sign of the difference of two cells equally likely,
//! whatever the distribution, the drift and the correlation of blocks. The signs are then tosses of a fair coin. The
//! test is the likelihood of the tosses under a mixture of unfair coins, divided by that under the fair one, with
//! Jeffreys' weights Beta(1/2, 1/2): a martingale that starts at 1, which by Ville's inequality exceeds 1/alpha at any
//! time with probability at most alpha (Robbins 1970, "Statistical methods related to the law of the iterated
//! logarithm"). Its inverse is an anytime-valid P value, and the shifts that it does not reject are a confidence
//! sequence of the median ratio (Howard and Ramdas 2022, "Sequential estimation of quantiles with applications to A/B
//! testing and best-arm identification").

use statrs::function::beta::ln_beta;

use crate::analysis::Interval;
use crate::compare::MIN_BLOCKS;

/// The share of a study's error rate for all looks before its end; the rest is for the end (Haybittle 1971 and Peto et
/// al. 1976 stop early only on strong evidence, too). At 11 blocks the range of all ratios is the interval of this
/// level.
pub const BEFORE_END: f64 = 0.005;

/// The logarithm of the evidence against a fair coin in `heads` of `tosses`.
#[must_use]
pub fn log_evidence(heads: usize, tosses: usize) -> f64 {
    let (heads, tails) = (heads as f64, (tosses - heads) as f64);
    (heads + tails) * std::f64::consts::LN_2 + ln_beta(heads + 0.5, tails + 0.5) - ln_beta(0.5, 0.5)
}

/// Blocks that a verdict before the end needs, if `family` comparisons share Holm's correction.
#[must_use]
pub fn blocks_needed(family: usize) -> u32 {
    let suffices = |n: &u32| log_evidence(0, *n as usize) >= (family as f64 / BEFORE_END).ln();
    (MIN_BLOCKS..).find(suffices).unwrap_or(u32::MAX)
}

/// The anytime-valid P value of the difference of two cells, from their values in the same order of blocks. Equal
/// values are no toss. `None` without blocks.
#[must_use]
pub fn p(cell: &[f64], baseline: &[f64]) -> Option<f64> {
    let tosses = cell.iter().zip(baseline).filter(|(a, b)| a != b);
    let heads = tosses.clone().filter(|(a, b)| a > b).count();
    (!cell.is_empty()).then(|| (-log_evidence(heads, tosses.count())).exp().min(1.0))
}

/// The confidence sequence of the median over blocks, at the level [`BEFORE_END`]. `None` with too few blocks for an
/// end.
#[must_use]
pub fn interval(by_block: &[f64]) -> Option<Interval> {
    let n = by_block.len();
    // A shift with this many values below it is rejected; the next value is the lower end.
    let rejected = (0..=n / 2).take_while(|below| log_evidence(*below, n) >= -BEFORE_END.ln()).last()?;
    let mut sorted = by_block.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let (low, high) = (sorted[rejected], sorted[n - 1 - rejected]);
    (low.is_finite() && high.is_finite()).then_some(Interval { low, high, confidence: 1.0 - BEFORE_END })
}

#[cfg(test)]
mod tests {
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// 2^n B(k + 1/2, n - k + 1/2) / B(1/2, 1/2), in Python: `math.gamma`.
    #[test]
    fn the_evidence_is_that_of_the_formula() {
        for (heads, tosses, evidence) in [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.5), (10, 10, 180.425), (5, 10, 0.246)] {
            let found = log_evidence(heads, tosses).exp();
            assert!((found / evidence - 1.0).abs() < 0.01, "{heads} of {tosses}: {found}");
        }
    }

    /// `beta_binomial_log_mixture` of the package confseq 0.0.11, two-sided with g = h = 1/2 and the `v_opt` that makes
    /// the mixture Beta(1/2, 1/2), at s = heads - tosses/2 and v = tosses/4.
    #[test]
    fn the_evidence_is_that_of_confseq() {
        for (heads, tosses, evidence) in [
            (0, 11, 5.841_946_673_9),
            (3, 30, 9.097_413_613_3),
            (8, 40, 5.630_970_292_7),
            (70, 100, 5.697_094_044_4),
            (200, 500, 6.734_147_485_0),
        ] {
            let found = log_evidence(heads, tosses);
            assert!((found - evidence).abs() < 1e-9, "{heads} of {tosses}: {found}");
        }
    }

    #[test]
    fn the_interval_of_eleven_blocks_is_their_range_and_narrows() {
        let values = |n: u32| (1..=n).map(f64::from).collect::<Vec<_>>();
        assert_eq!(interval(&values(10)), None);
        let of = |n| interval(&values(n)).map(|interval| (interval.low, interval.high));
        assert_eq!(of(11), Some((1.0, 11.0)));
        assert_eq!(of(30), Some((6.0, 25.0)));
    }

    #[test]
    fn a_verdict_before_the_end_needs_more_blocks_than_one_at_the_end() {
        assert_eq!([0, 1, 2, 8, 120].map(blocks_needed), [10, 11, 12, 14, 18]);
    }

    #[test]
    fn looking_after_every_block_gives_less_than_the_stated_rate_of_false_verdicts() {
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let studies = 4000;
        let mut rejected = 0;
        for _ in 0..studies {
            let mut heads = 0;
            let looks = (1..=200).any(|tosses| {
                heads += usize::from(random.random_bool(0.5));
                log_evidence(heads, tosses) >= -BEFORE_END.ln()
            });
            rejected += u32::from(looks);
        }
        assert!(f64::from(rejected) <= BEFORE_END * f64::from(studies), "{rejected}");
    }

    #[test]
    fn equal_values_are_no_evidence() {
        assert_eq!(p(&[1.0; 20], &[1.0; 20]), Some(1.0));
        assert_eq!(p(&[], &[]), None);
        assert!(p(&[1.0; 20], &[2.0; 20]).unwrap() < 1e-4);
    }
}
