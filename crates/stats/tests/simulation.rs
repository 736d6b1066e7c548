//! Verdicts, intervals and the stopping rule against simulated studies with a known truth. Seeds and therefore counts are fixed. The
//! bounds are those of `docs/statistics.md`, which has the figures for 4000 studies.

use wirelab_model::table::Design;
use wirelab_stats::analysis::Verdict;
use wirelab_stats::bootstrap::Bootstrap;
use wirelab_stats::compare::{PairedEffect, needed};
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
fn the_interval_of_a_median_has_about_its_nominal_coverage() {
    let mut bootstrap = Bootstrap::new(1);
    for trials in [10, 30] {
        let covered = median_covered(STUDIES, trials, &mut bootstrap);
        assert!(f64::from(covered) / f64::from(STUDIES) >= 0.9, "{trials} trials: {covered} of {STUDIES}");
    }
}

/// The numbers of verdicts less and more, and of intervals that contain the truth, for independent groups of 12 and 15 observations.
fn independent(ratio: f64) -> (u32, u32, u32) {
    let noise = Noise { correlation: 0.0, block: 0.0, drift: 0.0, ..Noise::REALISTIC };
    let mut bootstrap = Bootstrap::new(1);
    let (mut less, mut more, mut covered) = (0, 0, 0);
    for study in 1..=STUDIES {
        let pair = Pair::simulate(u64::from(study), 15, ratio, &noise);
        let effect = PairedEffect::under(Design::Independent, &pair.cell[..12], &pair.baseline, &mut bootstrap);
        let verdict = effect.verdict(needed(Design::Independent, 1), effect.p, 0.05);
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

#[test]
fn independent_groups_need_ten_observations_each_and_a_large_family_more() {
    assert_eq!(needed(Design::Independent, 1), 10);
    assert_eq!(needed(Design::Independent, 4618), 10);
    assert_eq!(needed(Design::Independent, 4620), 11);
    assert_eq!(needed(Design::Blocks, 26), 11);
}
