//! Verdicts, intervals and the stopping rule against simulated studies whose truth is known. Seeds are fixed, so the counts are too;
//! the bounds are those that the documentation promises, and `docs/statistics.md` has the figures for 4000 studies.

use wirelab_model::table::Design;
use wirelab_stats::analysis::Verdict;
use wirelab_stats::bootstrap::Bootstrap;
use wirelab_stats::compare::{PairedEffect, needed};
use wirelab_stats::simulation::{Length, Noise, Pair, median_covered, tally};

const STUDIES: u32 = 200;
const UNTIL_PRECISE: Length = Length::UntilPrecise { min: 10, max: 30, precision: 0.05 };

#[test]
fn at_most_five_in_a_hundred_aa_comparisons_are_told_apart_with_sequential_stopping() {
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
fn the_interval_of_a_median_covers_the_truth_about_as_often_as_it_says() {
    let mut bootstrap = Bootstrap::new(1);
    for trials in [10, 30] {
        let covered = median_covered(STUDIES, trials, &mut bootstrap);
        assert!(f64::from(covered) / f64::from(STUDIES) >= 0.9, "{trials} trials: {covered} of {STUDIES}");
    }
}

/// Verdicts of less and of more, and intervals that contain the truth, of groups of 12 and 15 observations that have nothing in common.
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
fn independent_groups_are_told_apart_as_seldom_where_they_are_equal_and_as_surely_where_they_are_not() {
    let (less, more, covered) = independent(1.0);
    // 5 % of them are 10; chance alone makes more than 18 of that in one series of a hundred.
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
