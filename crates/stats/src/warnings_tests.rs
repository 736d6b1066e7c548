use serde_json::json;
use wirelab_model::event::WarmedUp;
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Value;
use wirelab_model::outcome::{Blame, Outcome};

use super::*;
use crate::analysis::Moment;
use crate::fixture::{analyse, plan, records, study};

const LEVELS: [f64; 4] = [1000.0, 1000.0, 8000.0, 8000.0];
const BLUE: &str = "colour=blue size=small";

/// The warnings after `change` to every record of the blue small cell.
fn warned(change: impl FnMut(&mut TrialRecord)) -> Vec<Warning> {
    let mut all = records(12, LEVELS);
    all.iter_mut().filter(|record| record.trial.cell == 1).for_each(change);
    analyse(&all).warnings
}

fn set(record: &mut TrialRecord, metric: &str, value: f64) {
    record.values.insert(metric.to_owned(), Value::Measured(value));
}

#[test]
fn a_quiet_study_has_no_warnings() {
    assert_eq!(warned(|_| ()), []);
}

#[test]
fn too_few_blocks_give_a_warning() {
    assert_eq!(analyse(&records(4, LEVELS)).warnings, [Warning::TooFewBlocks { blocks: 4, needed: 10 }]);
}

#[test]
fn differing_halves_of_an_aa_pair_give_a_warning() {
    let mut all = records(12, LEVELS);
    all.iter_mut().filter(|record| record.trial.cell == 4).for_each(|record| set(record, "response_median", 1200.0));
    let warnings = analyse(&all).warnings;
    assert!(
        matches!(&warnings[..], [Warning::AaDiffers { cell, ratio }] if cell == "colour=red size=small" && *ratio > 1.1),
        "{warnings:?}"
    );
}

#[test]
fn a_trend_over_the_trials_is_drift_with_its_size() {
    let warnings = warned(|record| set(record, "response_median", 1000.0 + 10.0 * f64::from(record.trial.block)));
    let [Warning::Drift { cell, metric, change }] = &warnings[..] else { panic!("{warnings:?}") };
    assert_eq!((cell.as_str(), metric.as_str()), (BLUE, "response_median"));
    assert!((change - 110.0 / 1055.0).abs() < 1e-9, "{change}");
}

#[test]
fn failed_trials_are_counted_with_their_most_frequent_reason() {
    let warnings = warned(|record| {
        if record.trial.block < 2 {
            record.outcome = Outcome::failed(Blame::Server, "it exited early");
            record.values.clear();
        }
    });
    let reason = "server: it exited early".to_owned();
    assert_eq!(warnings, [Warning::TrialsFailed { cell: BLUE.to_owned(), failed: 2, of: 12, reason }]);
}

#[test]
fn failed_requests_of_all_trials_are_one_warning_with_the_most_frequent_kind() {
    let warnings = warned(|record| {
        let block = record.trial.block;
        set(record, "error_share", if block < 6 { 0.2 } else { 0.0 });
        if block < 6 {
            let kind = if block == 0 { "reset" } else { "timeout" }.to_owned();
            record.warnings.push(Warning::RequestsFailed { cell: BLUE.to_owned(), share: 0.2, kind });
        }
    });
    let [Warning::RequestsFailed { share, kind, .. }] = &warnings[..] else { panic!("{warnings:?}") };
    assert!((share - 0.1).abs() < 1e-9 && kind == "timeout");
}

#[test]
fn drops_are_summed_and_equal_warnings_appear_once() {
    let warnings = warned(|record| {
        record.warnings.push(Warning::Drops { cell: BLUE.to_owned(), counter: "RcvbufErrors".to_owned(), count: 3 });
        record.warnings.push(Warning::LoopbackMtu { mtu: 65_536 });
    });
    let drops = Warning::Drops { cell: BLUE.to_owned(), counter: "RcvbufErrors".to_owned(), count: 36 };
    assert_eq!(warnings, [drops, Warning::LoopbackMtu { mtu: 65_536 }]);
}

#[test]
fn stolen_time_gives_one_warning_for_the_run() {
    let warnings = warned(|record| {
        let share = if record.trial.block == 3 { 0.4 } else { 0.01 };
        set(record, "machine_stolen_share", share);
    });
    assert_eq!(warnings, [Warning::Stolen { trials: 1, of: 12, largest: 0.4 }]);
    assert_eq!(warned(|record| set(record, "machine_stolen_share", 0.02)), []);
}

#[test]
fn a_client_near_its_limit_gives_a_warning() {
    let warnings = warned(|record| set(record, "cpu_client_share", 0.95));
    assert_eq!(warnings, [Warning::ClientBound { cell: BLUE.to_owned(), share: 0.95 }]);
    assert_eq!(warned(|record| set(record, "cpu_client_share", 0.85)), []);
    let mut four_threads = plan();
    four_threads.cells[1].job.load.threads = Some(4);
    let mut all = records(12, LEVELS);
    all.iter_mut().filter(|record| record.trial.cell == 1).for_each(|record| set(record, "cpu_client_share", 1.5));
    assert_eq!(crate::analyse(&study(&json!({})), &four_threads, &all, &[], Moment::Ended).warnings, []);
    let mut four_clients = plan();
    four_clients.cells[1].job.load.clients = 4;
    assert_eq!(crate::analyse(&study(&json!({})), &four_clients, &all, &[], Moment::Ended).warnings, []);
}

#[test]
fn uneven_clients_give_one_warning_with_the_worst_trial() {
    let uneven =
        |share| Warning::ClientsUneven { cell: BLUE.to_owned(), what: "median response time".to_owned(), share };
    let apart = |share| Warning::ClientsApart { cell: BLUE.to_owned(), share };
    let warnings = warned(|record| {
        let number = f64::from(record.trial.block) / 100.0;
        record.warnings = vec![uneven(0.7 - number), apart(0.06 + number)];
    });
    assert_eq!(warnings, [uneven(0.7 - 0.11), apart(0.06 + 0.11)]);
}

#[test]
fn only_open_loops_give_a_warning_of_schedule_lag() {
    let lagging = |open: bool, lag: f64| {
        let mut plan = plan();
        if open {
            plan.cells[1].job.load.schedule =
                serde_json::from_value(json!({ "loop": "open", "rate_per_s": 100.0, "arrivals": "poisson" })).unwrap();
        }
        let mut all = records(12, [1e7; 4]);
        all.iter_mut().filter(|record| record.trial.cell == 1).for_each(|record| set(record, "lag_p99", lag));
        crate::analyse(&study(&json!({})), &plan, &all, &[], Moment::Ended).warnings
    };
    assert_eq!(lagging(true, 1.5e6), [Warning::ScheduleLag { cell: BLUE.to_owned(), p99_ns: 1.5e6 }]);
    assert_eq!(lagging(true, 0.5e6), []);
    assert_eq!(lagging(false, 5e6), []);
}

#[test]
fn a_closed_loop_with_stalls_gives_a_warning() {
    let stalls = Warning::Stalls { cell: Some(BLUE.to_owned()), share: 0.2 };
    assert_eq!(warned(|record| set(record, "stalled_share", 0.2)), [stalls]);
    assert_eq!(warned(|record| set(record, "stalled_share", 0.04)), []);
}

#[test]
fn missed_resumption_gives_a_warning_if_it_is_configured() {
    let mut plan = plan();
    plan.cells[1].job.load.resumption = Resumption::ZeroRtt;
    let mut all = records(12, LEVELS);
    for record in &mut all {
        set(record, "early_share", if record.trial.block % 2 == 0 { 1.0 } else { 0.5 });
    }
    let wanted = "early_accepted".to_owned();
    assert_eq!(
        crate::analyse(&study(&json!({})), &plan, &all, &[], Moment::Ended).warnings,
        [Warning::ResumptionMissed { cell: BLUE.to_owned(), wanted, share: 0.75 }]
    );
}

#[test]
fn warm_ups_that_reached_their_limit_are_counted_by_what_they_show() {
    let ends = [Steadiness::Steady, Steadiness::Changing, Steadiness::CannotTell, Steadiness::CannotTell];
    let warnings = warned(|record| {
        let steadiness = ends[record.trial.block as usize % ends.len()];
        record.warmed_up = Some(WarmedUp { took_ns: 5_000_000_000, requests: 9, steadiness });
    });
    let cell = BLUE.to_owned();
    assert_eq!(warnings, [Warning::NotWarmedUp { cell, changing: 3, cannot_tell: 6, of: 12 }]);
    assert_eq!(
        warnings[0].meaning(),
        "The warm-up of `colour=blue size=small` ended at its longest time without a steady state: in 3 of 12 trials \
         response times were still changing, and in 6 of 12 trials requests were too few or too noisy to tell."
    );
}
