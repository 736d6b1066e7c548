use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use statrs::distribution::{ContinuousCDF, Normal};
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Value;
use wirelab_model::missing::Missing;
use wirelab_model::outcome::{Blame, Outcome};

use super::*;
use crate::analysis::Standing;
use crate::fixture::{analyse, plan, record, records, study};

const PLAIN: [f64; 4] = [1000.0, 1000.0, 8000.0, 8000.0];

fn verdicts(compared: &[Compared]) -> Vec<Verdict> {
    compared.iter().map(|one| one.verdict).collect()
}

#[test]
fn a_large_difference_is_found_and_equal_cells_are_equivalent() {
    let compared = analyse(&records(12, [1000.0, 800.0, 8000.0, 8000.0])).comparisons;
    assert_eq!(verdicts(&compared), [Verdict::Less, Verdict::Equivalent, Verdict::Equivalent, Verdict::Equivalent]);
    let first = &compared[0];
    assert_eq!((first.cell, first.baseline, first.aa, first.blocks), (1, 0, false, 12));
    assert!((first.ratio.unwrap() - 0.8).abs() < 0.02, "{first:?}");
    assert!(first.interval.unwrap().high < 0.85 && first.interval.unwrap().low > 0.75, "{first:?}");
    // 12 blocks all on one side: 2 / 2^12, times the family of two.
    assert_eq!((first.p, first.p_holm), (Some(2.0 / 4096.0), Some(4.0 / 4096.0)));
}

#[test]
fn a_verdict_is_less_or_more_for_either_better_direction() {
    let compared = analyse(&records(12, [1000.0, 1300.0, 8000.0, 4000.0])).comparisons;
    assert_eq!(verdicts(&compared[..2]), [Verdict::More, Verdict::Less]);
}

#[test]
fn an_aa_pair_is_outside_the_family_and_is_the_noise_floor_of_its_baseline() {
    let compared = analyse(&records(12, PLAIN)).comparisons;
    assert_eq!(compared[2].p_holm, None);
    assert_eq!(compared[2].noise_floor, None);
    assert_eq!(compared[0].noise_floor, compared[2].interval);
    assert_eq!(compared[1].noise_floor, compared[3].interval);
}

#[test]
fn nine_blocks_give_no_verdict_however_large_the_difference() {
    let compared = analyse(&records(9, [1000.0, 100.0, 8000.0, 8000.0])).comparisons;
    assert_eq!(compared[0].verdict, Verdict::CannotTell { why: CannotTell::TooFewBlocks });
    assert!(compared[0].ratio.is_some() && compared[0].interval.is_some());
}

#[test]
fn a_large_family_needs_more_blocks() {
    assert_eq!(blocks_needed(0, ALPHA), 10);
    assert_eq!(blocks_needed(25, ALPHA), 10);
    assert_eq!(blocks_needed(26, ALPHA), 11);
    assert_eq!(blocks_needed(120, ALPHA), 13);
    for family in 1..500 {
        let (needed, family_size) = (blocks_needed(family, ALPHA), family as f64);
        assert!(family_size * 2.0 / f64::from(needed).exp2() <= ALPHA);
        assert!(needed == MIN_BLOCKS || family_size * 2.0 / f64::from(needed - 1).exp2() > ALPHA);
    }
}

#[test]
fn a_trial_that_the_lab_failed_does_not_count_and_the_last_record_does() {
    let mut all = records(14, [1000.0, 800.0, 8000.0, 8000.0]);
    all.iter_mut().filter(|r| r.trial.cell == 1 && r.trial.block < 2).for_each(|r| {
        r.outcome = Outcome::failed(Blame::Lab, "the link broke");
    });
    assert_eq!(analyse(&all).comparisons[0].blocks, 12);
    all.push(record(1, 0, &[("response_median", 800.0)]));
    assert_eq!(analyse(&all).comparisons[0].blocks, 13);
}

/// Cell 1 takes 92 % of its baseline's time, and this share of its requests fails.
fn faster_but_failing(share: f64) -> Vec<TrialRecord> {
    let mut all = records(14, [1000.0, 920.0, 8000.0, 8000.0]);
    for record in &mut all {
        let share = if record.trial.cell == 1 { share } else { 0.0 };
        record.values.insert("error_share".to_owned(), Value::Measured(share));
    }
    all
}

#[test]
fn a_cell_that_fails_more_is_never_called_faster() {
    assert_eq!(analyse(&faster_but_failing(0.005)).comparisons[0].verdict, Verdict::Less, "within the margin");
    let failing = analyse(&faster_but_failing(0.26));
    assert_eq!(failing.comparisons[0].verdict, Verdict::CannotTell { why: CannotTell::UnequalFailures });
    assert!((failing.cells[1].failure_share.unwrap() - 0.26).abs() < 1e-9);
    assert!(
        failing.contests.iter().flat_map(|contest| &contest.rivals).all(|rival| rival.standing != Standing::Beaten)
    );
}

#[test]
fn a_cell_that_fails_more_may_be_slower_but_a_baseline_that_fails_more_makes_no_cell_slower() {
    let mut slower = records(14, [1000.0, 1300.0, 8000.0, 8000.0]);
    slower.iter_mut().for_each(|r| {
        let share = if r.trial.cell == 1 { 0.3 } else { 0.0 };
        r.values.insert("error_share".to_owned(), Value::Measured(share));
    });
    assert_eq!(analyse(&slower).comparisons[0].verdict, Verdict::More);
    slower.iter_mut().filter(|r| r.trial.cell == 0).for_each(|r| {
        r.values.insert("error_share".to_owned(), Value::Measured(0.6));
    });
    let verdict = analyse(&slower).comparisons[0].verdict;
    assert_eq!(verdict, Verdict::CannotTell { why: CannotTell::UnequalFailures });
}

#[test]
fn a_failed_trial_ranks_as_slower_than_every_completed_one() {
    let mut all = records(14, [1000.0, 800.0, 8000.0, 8000.0]);
    let fail = |all: &mut [TrialRecord], blocks: u32| {
        all.iter_mut().filter(|r| r.trial.cell == 1 && r.trial.block < blocks).for_each(|r| {
            r.outcome = Outcome::failed(Blame::Server, "it crashed");
        });
    };
    fail(&mut all, 5);
    let few = analyse(&all).comparisons[0].clone();
    assert_eq!(few.blocks, 14, "no block is dropped");
    assert!(matches!(few.verdict, Verdict::CannotTell { .. }), "{few:?}");
    fail(&mut all, 13);
    let most = analyse(&all).comparisons[0].clone();
    assert_eq!((most.verdict, most.ratio, most.interval), (Verdict::More, None, None), "its median is infinite");
}

#[test]
fn a_percentile_among_failed_requests_ranks_as_the_slowest_and_has_no_estimate() {
    let mut all = records(14, PLAIN);
    all.iter_mut().filter(|r| r.trial.cell == 1).for_each(|r| {
        r.values.insert("response_median".to_owned(), Value::Infinite { infinite: "60 of 100 requests failed".into() });
    });
    let analysis = analyse(&all);
    assert_eq!((analysis.comparisons[0].verdict, analysis.comparisons[0].ratio), (Verdict::More, None));
    let reason = &analysis.cells[1].not_measured["response_median"];
    assert_eq!(reason, "infinite in 14 of 14 trials: 60 of 100 requests failed");
}

#[test]
fn a_metric_with_missing_values_is_not_compared_by_the_remaining_ones() {
    let mut all = records(14, PLAIN);
    let slow = all.iter_mut().find(|r| r.trial.cell == 1 && r.trial.block == 3).unwrap();
    slow.values.insert("response_median".to_owned(), Value::missing(Missing::other("only 9 requests")));
    let analysis = analyse(&all);
    assert_eq!(analysis.comparisons[0].verdict, Verdict::CannotTell { why: CannotTell::NoValues });
    assert!(!analysis.cells[1].estimates.contains_key("response_median"));
    let reason = &analysis.cells[1].not_measured["response_median"];
    assert!(reason.contains("13 of 14 trials") && reason.contains("only 9 requests"), "{reason}");
}

#[test]
fn a_cell_without_values_is_no_verdict() {
    let all: Vec<_> = records(12, PLAIN).into_iter().filter(|r| r.trial.cell != 1).collect();
    let compared = &analyse(&all).comparisons[0];
    assert_eq!(compared.verdict, Verdict::CannotTell { why: CannotTell::NoValues });
    assert_eq!((compared.ratio, compared.p, compared.p_holm, compared.blocks), (None, None, None, 0));
}

#[test]
fn a_real_difference_within_the_margin_is_equivalent() {
    let shifted = [0.98; 15].map(|base| base * 1000.0);
    let baseline: Vec<f64> = (0..15).map(|i| 1000.0 + f64::from(i % 5)).collect();
    let effect = PairedEffect::of(&shifted, &baseline, &mut Bootstrap::new(1));
    assert!(effect.p.unwrap() < 0.001);
    assert_eq!(effect.verdict(effect.p, &Rule::plain(10, 0.05)), Verdict::Equivalent);
    assert_eq!(effect.verdict(effect.p, &Rule::plain(10, 0.01)), Verdict::Less);
}

#[test]
fn an_interval_without_significance_is_no_verdict() {
    let (cell, baseline) = ([900.0; 12], [1000.0; 12]);
    let effect = PairedEffect::of(&cell, &baseline, &mut Bootstrap::new(1));
    let verdict = |effect: &PairedEffect| effect.verdict(Some(0.2), &Rule::plain(10, 0.05));
    assert_eq!(verdict(&effect), Verdict::CannotTell { why: CannotTell::Correction }, "significant by itself");
    let noisy = PairedEffect { p: Some(0.2), ..effect };
    assert_eq!(verdict(&noisy), Verdict::CannotTell { why: CannotTell::TooNoisy });
}

#[test]
fn a_difference_no_larger_than_that_of_the_aa_pair_is_no_verdict() {
    let effect = PairedEffect::of(&[900.0; 12], &[1000.0; 12], &mut Bootstrap::new(1));
    let beside = |noise| effect.verdict(effect.p, &Rule { noise: Some(noise), ..Rule::plain(10, 0.05) });
    assert_eq!(beside(1.05), Verdict::Less);
    assert_eq!(beside(1.15), Verdict::CannotTell { why: CannotTell::NoiseFloor });
}

/// The test asks for symmetry, the size is a ratio of medians: with equal medians and skewed log ratios the test alone
/// is wrong more often than in 5 % of cases, and the interval prevents these verdicts.
#[test]
fn a_skewed_cell_with_an_equal_median_seldom_has_a_verdict() {
    let mut random = ChaCha8Rng::seed_from_u64(11);
    let (mut significant, mut verdicts) = (0, 0);
    for _ in 0..400 {
        let mut value = |quantile: fn(f64) -> f64| -> Vec<f64> {
            (0..20).map(|_| (0.1 * quantile(random.random_range(1e-12..1.0))).exp()).collect()
        };
        // An exponential distribution with the median 0, and a narrow symmetric one.
        let cell = value(|uniform| -uniform.ln() - std::f64::consts::LN_2);
        let baseline = value(|uniform| 0.1 * (uniform - 0.5));
        let effect = PairedEffect::of(&cell, &baseline, &mut Bootstrap::new(1));
        significant += u32::from(effect.p.is_some_and(|p| p <= 0.05));
        let verdict = effect.verdict(effect.p, &Rule::plain(10, 0.0));
        verdicts += u32::from(matches!(verdict, Verdict::Less | Verdict::More));
    }
    assert!(significant > 28, "{significant} of 400 have P of at most 5 %");
    assert!(verdicts <= 20, "{verdicts} of 400 have a verdict");
}

#[test]
fn before_the_end_a_verdict_needs_more_and_the_other_results_are_withheld() {
    let at = |blocks, moment| {
        let all = records(blocks, [1000.0, 800.0, 8000.0, 8000.0]);
        crate::analyse(&study(&json!({})), &plan(), &all, &[], moment)
    };
    assert_eq!(at(10, Moment::Ended).comparisons[0].verdict, Verdict::Less);
    let early = at(10, Moment::Underway);
    assert_eq!(early.comparisons[0].verdict, Verdict::CannotTell { why: CannotTell::TooFewBlocks });
    assert_eq!(early.comparisons[0].blocks_needed, 12);
    let later = at(12, Moment::Underway);
    assert_eq!(later.comparisons[0].verdict, Verdict::Less);
    assert_eq!(later.comparisons[0].interval.unwrap().confidence, 0.995);
    assert!(later.contests.iter().flat_map(|contest| &contest.rivals).all(|rival| rival.standing == Standing::Open));
}

#[test]
fn before_the_end_zeros_in_few_blocks_leave_a_verdict() {
    let zero_in = |blocks: u32| {
        let mut all = records(16, [1000.0, 1500.0, 8000.0, 8000.0]);
        all.iter_mut().filter(|r| r.trial.cell == 0 && r.trial.block < blocks).for_each(|r| {
            r.values.insert("response_median".to_owned(), Value::Measured(0.0));
        });
        crate::analyse(&study(&json!({})), &plan(), &all, &[], Moment::Underway).comparisons[0].clone()
    };
    for blocks in [0, 1, 3] {
        assert_eq!(zero_in(blocks).verdict, Verdict::More, "{blocks}");
    }
}

#[test]
fn zeros_are_compared_without_a_ratio() {
    let of = |cell: &[f64], baseline: &[f64]| {
        let effect = PairedEffect::of(cell, baseline, &mut Bootstrap::new(1));
        (effect.ratio, effect.verdict(effect.p, &Rule::plain(10, 0.05)))
    };
    assert_eq!(of(&[0.0; 12], &[0.0; 12]), (None, Verdict::Equivalent));
    let failing: Vec<f64> = (0..12).map(|i| 0.1 + f64::from(i) / 100.0).collect();
    assert_eq!(of(&failing, &[0.0; 12]), (None, Verdict::More));
    assert_eq!(of(&[0.0; 12], &failing), (Some(0.0), Verdict::Less));
    let rarely: Vec<f64> = (0..12).map(|i| if i == 0 { 0.1 } else { 0.0 }).collect();
    assert_eq!(of(&rarely, &[0.0; 12]).1, Verdict::CannotTell { why: CannotTell::TooNoisy });
}

#[test]
fn comparisons_of_the_first_metric_come_first_and_an_exploratory_metric_is_a_family_of_its_own() {
    let study = study(
        &json!({ "compare": { "factor": "colour", "baseline": "red", "metrics": ["goodput", "response_median"] } }),
    );
    let mut all = records(12, [1000.0, 800.0, 8000.0, 8000.0]);
    for record in &mut all {
        record.values.insert("goodput".to_owned(), Value::Measured(5.0));
    }
    let compared = crate::analyse(&study, &plan(), &all, &[], Moment::Ended).comparisons;
    let metrics: Vec<_> = compared.iter().map(|one| one.metric.as_str()).collect();
    assert_eq!(metrics, [["goodput"; 4], ["response_median"; 4]].concat());
    assert_eq!(compared[0].verdict, Verdict::Equivalent);
    assert_eq!(compared[4].p_holm, Some(4.0 / 4096.0));
    assert!(!compared[0].exploratory && compared[4].exploratory);
}

#[test]
fn the_same_records_give_the_same_analysis() {
    let all = records(12, PLAIN);
    assert_eq!(analyse(&all), analyse(&all));
}

/// A null study with three primary metrics, whose values correlate: noise of a trial that all metrics share, and their
/// own.
#[test]
fn a_null_study_has_a_false_verdict_in_any_primary_metric_in_at_most_one_of_twenty() {
    const METRICS: [&str; 3] = ["response_median", "response_p90", "goodput"];
    let compare = json!({ "factor": "colour", "baseline": "red", "metrics": METRICS, "primary": METRICS });
    let study = study(&json!({ "compare": compare }));
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut gauss = move || Normal::standard().inverse_cdf(random.random_range(1e-12..1.0));
    let (studies, blocks) = (400, 14);
    let mut wrong = 0;
    for _ in 0..studies {
        let mut all = Vec::new();
        for block in 0..blocks {
            for cell in 0..6 {
                let shared = gauss();
                let values = METRICS.map(|metric| (metric, (0.05 * (shared + gauss())).exp()));
                all.push(record(cell, block, &values));
            }
        }
        let compared = crate::analyse(&study, &plan(), &all, &[], Moment::Ended).comparisons;
        let is_wrong = |one: &Compared| !one.aa && matches!(one.verdict, Verdict::Less | Verdict::More);
        wrong += u32::from(compared.iter().any(is_wrong));
    }
    assert!(wrong <= studies / 20, "{wrong} of {studies}");
}
