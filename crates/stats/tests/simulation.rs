//! Verdicts, intervals and the stopping rule against simulated studies with a known truth. Seeds and therefore counts
//! are fixed. The bounds are those of `docs/statistics.md`, which has the figures for 4000 studies.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, Normal};
use wirelab_model::table::Design;
use wirelab_stats::analysis::Verdict;
use wirelab_stats::anytime::{self, BEFORE_END};
use wirelab_stats::bootstrap::Bootstrap;
use wirelab_stats::brunner_munzel::brunner_munzel;
use wirelab_stats::compare::{ALPHA, PairedEffect, Rule, needed};
use wirelab_stats::simulation::{Length, Noise, Pair, median_covered, tally};

const STUDIES: u32 = 200;
const UNTIL_PRECISE: Length = Length::UntilPrecise { min: 10, max: 30, precision: 0.05 };

#[test]
fn at_most_five_in_a_hundred_aa_comparisons_differ_with_sequential_stopping() {
    let aa = tally(STUDIES, 1.0, UNTIL_PRECISE, 1, &mut Bootstrap::new(1));
    assert!(aa.less + aa.more <= STUDIES / 20, "{aa:?}");
    assert!(aa.blocks < 30 * STUDIES, "the rule never stopped: {aa:?}");
    assert!(aa.share(aa.covered) >= 0.92, "{aa:?}");
}

#[test]
fn a_difference_of_ten_percent_is_found_more_often_with_more_blocks_and_never_reversed() {
    let mut bootstrap = Bootstrap::new(1);
    for (blocks, at_least) in [(10, 0.55), (20, 0.85), (30, 0.93)] {
        let planted = tally(STUDIES, 1.1, Length::Blocks(blocks), 1, &mut bootstrap);
        assert!(planted.share(planted.more) >= at_least, "{blocks} blocks: {planted:?}");
        assert_eq!(planted.less, 0, "{blocks} blocks: {planted:?}");
        assert!(planted.share(planted.covered) >= 0.92, "{blocks} blocks: {planted:?}");
    }
}

#[test]
fn a_difference_of_the_margin_is_rarely_called_equivalent() {
    let edge = tally(STUDIES, 1.05, Length::Blocks(30), 1, &mut Bootstrap::new(1));
    assert!(edge.share(edge.equivalent) <= 0.08, "{edge:?}");
}

#[test]
fn intervals_cover_the_truth_from_the_smallest_number_of_trials_that_has_one() {
    const COVERED: u32 = 4000 * 93 / 100;
    let mut bootstrap = Bootstrap::new(1);
    let noise = Noise { correlation: 0.0, drift: 0.0, ..Noise::REALISTIC };
    for trials in (5..=12).chain([15, 20, 30]) {
        let medians = median_covered(4000, trials, &mut bootstrap);
        assert!(medians >= COVERED, "{trials} trials: {medians} medians");
        let covers = |seed: u32| {
            let pair = Pair::simulate(u64::from(seed), trials, 1.1, &noise);
            let effect = PairedEffect::of(&pair.cell, &pair.baseline, &mut bootstrap);
            effect.interval_95.is_some_and(|i| i.low <= 1.1 && 1.1 <= i.high)
        };
        let ratios = (1..=4000).map(covers).filter(|covers| *covers).count();
        println!("{trials}: {medians} medians, {ratios} ratios");
        assert!(ratios >= COVERED as usize, "{trials} trials: {ratios} ratios");
    }
}

/// The numbers of verdicts less and more, and of intervals that contain the truth, for independent groups of 12 and 15
/// observations.
fn independent(ratio: f64) -> (u32, u32, u32) {
    let noise = Noise { correlation: 0.0, block: 0.0, drift: 0.0, ..Noise::REALISTIC };
    let mut bootstrap = Bootstrap::new(1);
    let (mut less, mut more, mut covered) = (0, 0, 0);
    for study in 1..=STUDIES {
        let pair = Pair::simulate(u64::from(study), 15, ratio, &noise);
        let effect = PairedEffect::under(Design::Independent, &pair.cell[..12], &pair.baseline, &mut bootstrap);
        let verdict = effect.verdict(effect.p, &Rule::plain(needed(Design::Independent, 1, ALPHA), 0.05));
        less += u32::from(verdict == Verdict::Less);
        more += u32::from(verdict == Verdict::More);
        covered += u32::from(effect.interval_95.is_some_and(|i| i.low <= ratio && ratio <= i.high));
    }
    (less, more, covered)
}

#[test]
fn independent_groups_have_the_same_error_rate_and_power() {
    let (less, more, covered) = independent(1.0);
    // 5 % of them are 10. By chance alone, one series of a hundred has more than 18.
    assert!(less + more <= 18, "{less} less, {more} more");
    assert!(f64::from(covered) / f64::from(STUDIES) >= 0.92, "{covered}");
    let (less, more, covered) = independent(1.15);
    assert!(less == 0 && f64::from(more) / f64::from(STUDIES) >= 0.8, "{less} less, {more} more");
    assert!(f64::from(covered) / f64::from(STUDIES) >= 0.92, "{covered}");
}

/// A value with heavy tails: Student's t with two degrees of freedom, scaled.
fn heavy(random: &mut ChaCha8Rng, scale: f64) -> f64 {
    let normal = |random: &mut ChaCha8Rng| Normal::standard().inverse_cdf(random.random_range(1e-12..1.0));
    let chi = -2.0 * random.random_range(1e-12..1.0_f64).ln();
    100.0 + scale * normal(random) / (chi / 2.0).sqrt()
}

/// Two groups with equal medians, whose sizes and scatter differ: the rank-sum test of Wilcoxon has P at most 5 % in up
/// to 16 % of such data.
#[test]
fn independent_groups_of_unequal_shapes_keep_the_error_rate() {
    let mut random = ChaCha8Rng::seed_from_u64(1);
    for (few, many, scale) in [(10, 40, 4.0), (40, 10, 4.0), (12, 24, 3.0), (15, 15, 5.0)] {
        let mut significant = 0;
        for _ in 0..1000 {
            let first: Vec<f64> = (0..few).map(|_| heavy(&mut random, scale)).collect();
            let second: Vec<f64> = (0..many).map(|_| heavy(&mut random, 1.0)).collect();
            significant += u32::from(brunner_munzel(&first, &second).unwrap().p <= 0.05);
        }
        assert!(significant <= 70, "{few} and {many} values: {significant} of 1000");
    }
}

/// A user who looks after every block, and stops at the first verdict.
#[test]
fn looking_after_every_block_and_stopping_at_a_verdict_keeps_the_error_rate() {
    let studies = 400;
    let stopped = |seed: u32, ratio: f64| {
        let pair = Pair::simulate(u64::from(seed), 30, ratio, &Noise::REALISTIC);
        let early = (1..30)
            .any(|blocks| anytime::p(&pair.cell[..blocks], &pair.baseline[..blocks]).is_some_and(|p| p <= BEFORE_END));
        let effect = PairedEffect::of(&pair.cell, &pair.baseline, &mut Bootstrap::new(1));
        let rule = Rule { alpha: ALPHA - BEFORE_END, ..Rule::plain(10, 0.05) };
        early || matches!(effect.verdict(effect.p, &rule), Verdict::Less | Verdict::More)
    };
    let verdicts = |ratio| (1..=studies).filter(|seed| stopped(*seed, ratio)).count();
    assert!(verdicts(1.0) <= 20, "{}", verdicts(1.0));
    assert!(verdicts(1.1) >= 360, "{}", verdicts(1.1));
}

#[test]
fn independent_groups_need_ten_observations_each_and_a_large_family_more() {
    assert_eq!(needed(Design::Independent, 1, ALPHA), 10);
    assert_eq!(needed(Design::Independent, 4618, ALPHA), 10);
    assert_eq!(needed(Design::Independent, 4620, ALPHA), 11);
    assert_eq!(needed(Design::Blocks, 26, ALPHA), 11);
}
