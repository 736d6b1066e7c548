use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value as Json, json};
use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::reason::Reason;

use super::*;
use crate::analysis::Moment;
use crate::fixture::{plan, record, records, study};
use crate::metrics::METRICS;

fn results(require: &Json, records: &[TrialRecord]) -> Vec<RequirementResult> {
    let study = study(&json!({ "require": require }));
    let metrics: Vec<_> = METRICS.iter().collect();
    crate::analyse(&study, &plan(), records, &metrics, Moment::Ended).requirements
}

fn result(that: &str, records: &[TrialRecord]) -> RequirementResult {
    results(&json!([{ "that": that, "cells": { "size": "small" } }]), records).remove(0)
}

fn verdict(that: &str, records: &[TrialRecord]) -> RequirementVerdict {
    result(that, records).verdict
}

const fn cannot(why: CannotTell) -> RequirementVerdict {
    RequirementVerdict::CannotTell { why }
}

/// Cells 0 and 1, red and blue of the small size, have medians near 1000 and 1500 ns.
const LEVELS: [f64; 4] = [1000.0, 1500.0, 8000.0, 16_000.0];

#[test]
fn a_bound_far_above_is_met_and_one_far_below_is_not() {
    let records = records(12, LEVELS);
    assert_eq!(verdict("response_median at most 2 us", &records), RequirementVerdict::Met);
    assert_eq!(verdict("response_median at most 1200 ns", &records), RequirementVerdict::NotMet);
    assert_eq!(verdict("response_median at most 1500 ns", &records), cannot(CannotTell::TooNoisy));
    assert_eq!(verdict("response_median at least 900 ns", &records), RequirementVerdict::Met);
    let tests = result("response_median at most 1200 ns", &records).tests;
    let each: Vec<_> = tests.iter().map(|test| (test.cell, test.verdict)).collect();
    assert_eq!(each, [(0, RequirementVerdict::Met), (1, RequirementVerdict::NotMet)]);
    let (size, interval) = (tests[1].size.unwrap(), tests[1].interval.unwrap());
    assert!(interval.low < size && size < interval.high && interval.low > 1450.0, "{interval:?}");
}

/// One-sided sign test at 5 %: with 10 trials 9 must keep the bound, because P(9 or 10 heads) = 11/1024.
#[test]
fn nine_of_ten_trials_suffice_and_eight_do_not() {
    let trials = |violating: u32| {
        let value = |block| if block < violating { 20.0 } else { 10.0 };
        let of_block = |block| (0..6).map(move |cell| record(cell, block, &[("response_median", value(block))]));
        (0..10).flat_map(of_block).collect::<Vec<_>>()
    };
    let that = "response_median at most 15 ns";
    assert_eq!(verdict(that, &trials(1)), RequirementVerdict::Met);
    assert!((result(that, &trials(1)).tests[0].p_met - 11.0 / 1024.0).abs() < 1e-12);
    assert_eq!(verdict(that, &trials(2)), cannot(CannotTell::TooNoisy));
    // Two tests: 11/1024 twice is below 5 %.
    assert_eq!(verdict(that, &trials(9)), RequirementVerdict::NotMet);
    assert_eq!(verdict(that, &trials(8)), cannot(CannotTell::TooNoisy));
}

#[test]
fn nine_blocks_are_too_few() {
    assert_eq!(verdict("response_median at most 1 s", &records(9, LEVELS)), cannot(CannotTell::TooFewBlocks));
}

#[test]
fn a_regression_beyond_the_margin_is_not_met() {
    let records = records(12, LEVELS);
    let baseline = |by: &str| verdict(&format!("response_median no more than {by} worse than the baseline"), &records);
    assert_eq!(baseline("60 %"), RequirementVerdict::Met);
    assert_eq!(baseline("5 %"), RequirementVerdict::NotMet);
    assert_eq!(baseline("50 %"), cannot(CannotTell::TooNoisy));
    let blue = result("response_median no more than 5 % worse than the level blue", &records);
    assert_eq!(blue.verdict, RequirementVerdict::Met);
    assert_eq!((blue.tests.len(), blue.tests[0].cell, blue.tests[0].baseline), (1, 0, Some(1)));
    assert!((blue.tests[0].size.unwrap() - 1.0 / 1.5).abs() < 0.02);
}

#[test]
fn a_higher_rate_is_never_worse() {
    let with_rates = |blue: f64| {
        let rates = [1000.0, blue, 1000.0, blue, 1000.0, 1000.0];
        let of = |cell: usize, block| rates[cell] * crate::fixture::wobble(cell, block);
        let of_block = |block| (0..6).map(move |cell| record(cell, block, &[("request_rate", of(cell, block))]));
        (0..12).flat_map(of_block).collect::<Vec<_>>()
    };
    let that = "request_rate no more than 5 % worse than the baseline";
    assert_eq!(verdict(that, &with_rates(2000.0)), RequirementVerdict::Met);
    assert_eq!(verdict(that, &with_rates(1000.0)), RequirementVerdict::Met);
    assert_eq!(verdict(that, &with_rates(800.0)), RequirementVerdict::NotMet);
}

#[test]
fn a_server_that_always_fails_meets_nothing() {
    let mut records = records(12, LEVELS);
    for record in records.iter_mut().filter(|record| record.trial.cell == 1) {
        record.outcome = Outcome::failed(Blame::Server, Reason::Reported("it crashed".to_owned()));
        record.values.clear();
    }
    for that in [
        "response_median at most 1 s",
        "errors at most 1 %",
        "response_median no more than 50 % worse than the baseline",
    ] {
        let result = result(that, &records);
        let failing = result.tests.iter().find(|test| test.cell == 1).unwrap();
        assert_eq!(failing.verdict, RequirementVerdict::NotMet, "{that}");
        assert!(failing.size.is_none_or(|share| share == 1.0) && failing.interval.is_none(), "{failing:?}");
    }
}

fn with_failures(blocks: u32, share: impl Fn(u32) -> f64, requests: f64) -> Vec<TrialRecord> {
    let of = |cell: usize, block| {
        let share = share(block);
        record(cell, block, &[("error_share", share), ("requests", (requests * (1.0 - share)).round())])
    };
    (0..blocks).flat_map(|block| (0..6).map(move |cell| (cell, block))).map(|(cell, block)| of(cell, block)).collect()
}

/// The rule of three: 3000 requests without a failure show at most 0.1 %.
#[test]
fn few_requests_without_a_failure_do_not_show_a_small_share() {
    let that = "errors at most 0.1 %";
    assert_eq!(verdict(that, &with_failures(10, |_| 0.0, 400.0)), RequirementVerdict::Met);
    assert_eq!(verdict(that, &with_failures(10, |_| 0.0, 200.0)), cannot(CannotTell::TooNoisy));
    assert_eq!(verdict(that, &with_failures(10, |_| 0.02, 400.0)), RequirementVerdict::NotMet);
}

#[test]
fn failures_in_one_trial_of_ten_are_no_proof_for_all() {
    let one = |block| if block == 3 { 0.2 } else { 0.0 };
    assert_eq!(verdict("errors at most 1 %", &with_failures(10, one, 1000.0)), cannot(CannotTell::TooNoisy));
}

#[test]
fn a_requirement_without_cells_or_values_is_inconclusive() {
    let records = records(12, LEVELS);
    let absent =
        json!([{ "that": "response_median at most 1 s", "cells": { "size": "huge" }, "inconclusive": "fail" }]);
    let absent = results(&absent, &records).remove(0);
    assert_eq!((absent.verdict, absent.fails()), (cannot(CannotTell::NoValues), true));
    let unmeasured = result("response_p99 at most 1 s", &records);
    assert_eq!((unmeasured.verdict, unmeasured.fails()), (cannot(CannotTell::NoValues), false));
}

#[test]
fn nothing_is_decided_before_the_end() {
    let study = study(&json!({ "require": [{ "that": "response_median at most 1 s" }] }));
    let analysis = crate::analyse(&study, &plan(), &records(12, LEVELS), &[], Moment::Underway);
    assert_eq!(analysis.requirements[0].verdict, cannot(CannotTell::NotEnded));
}

/// Each of 400 simulated studies has four cells whose true median lies on the bound. No false `met` of all cells, and a
/// false `not met` of any, may occur in more than 5 % of them, apart from the scatter of the simulation.
#[test]
fn on_the_bound_either_verdict_is_wrong_in_at_most_one_study_of_twenty() {
    let mut random = ChaCha8Rng::seed_from_u64(7);
    let (mut met_in_first, mut not_met) = (0, 0);
    for _ in 0..400 {
        let of_trial = |(block, cell): (u32, usize)| {
            let skewed = (1.0 - random.random::<f64>()).ln() / -std::f64::consts::LN_2;
            record(cell, block, &[("response_median", 100.0 * skewed)])
        };
        let records: Vec<_> = (0..20).flat_map(|block| (0..6).map(move |cell| (block, cell))).map(of_trial).collect();
        let result = results(&json!([{ "that": "response_median at most 100 ns" }]), &records).remove(0);
        met_in_first += u32::from(result.tests[0].verdict == RequirementVerdict::Met);
        not_met += u32::from(result.verdict == RequirementVerdict::NotMet);
    }
    assert!(met_in_first <= 28 && not_met <= 28, "{met_in_first} and {not_met} of 400");
}

/// An interval of +-10 % that must shrink to +-5 % needs four times the blocks.
#[test]
fn a_noisy_test_names_the_blocks_that_would_decide_it() {
    let test = |size: f64, low: f64, high: f64| Requiring {
        size: Some(size),
        interval: Some(Interval { low, high, confidence: 0.9 }),
        ..shown(0, None, 10)
    };
    let (step, half) = (1.1_f64, 1.1_f64.sqrt());
    assert_eq!(blocks_to_decide(&test(100.0, 100.0 / step, 100.0 * step), 100.0 * half * 0.9999), Some(41));
    assert_eq!(blocks_to_decide(&test(100.0, 100.0 / step, 100.0 * step), 100.0 / half * 1.0001), Some(41));
    assert_eq!(blocks_to_decide(&test(100.0, 99.0, 101.0), 100.0), None, "on the limit no number decides");
    let noisy = result("response_median at most 1502 ns", &records(12, LEVELS));
    let told = noisy.tests.iter().find(|test| test.cell == 1).unwrap();
    assert!(told.blocks_to_decide.is_none_or(|blocks| blocks > 12), "{told:?}");
}
