use wirelab_model::metric::{Side, Unit, Value};
use wirelab_model::outcome::{Blame, Outcome};

use super::*;
use crate::fixture::{plan, records};

const MEDIAN: Metric = Metric {
    name: "response_median",
    title: "Response time, median",
    unit: Unit::Nanoseconds,
    side: Side::Client,
    vantage: "",
    better: Better::Lower,
    meaning: "",
};

/// Plans in which no two cells have the same settings, apart from A/A twins.
fn plans() -> [Plan; 2] {
    [(); 2].map(|()| {
        let mut plan = plan();
        for (number, cell) in plan.cells.iter_mut().enumerate() {
            cell.job.load.threads = Some(cell.twin_of.unwrap_or(number) as u16 + 1);
        }
        plan
    })
}

fn compare(first: &[TrialRecord], second: &[TrialRecord], fail_on: &[&str]) -> Between {
    let require: Vec<_> = fail_on.iter().map(|text| Statement::from_failure(text).unwrap()).collect();
    let metrics = ["response_median".to_owned()];
    let wanted = Wanted { metrics: &metrics, margin: 0.05, require: &require, seed: 1 };
    let plans = plans();
    let run = |plan, records| OfRun { plan, records };
    between([run(&plans[0], first), run(&plans[1], second)], &wanted, &[&MEDIAN])
}

const SAME: [f64; 4] = [1e6, 2e6, 3e6, 4e6];

#[test]
fn a_slower_cell_is_found_and_the_others_are_equivalent() {
    let found = compare(&records(20, SAME), &records(20, [1e6, 2.6e6, 3e6, 4e6]), &["p50 5 % worse"]);
    let verdicts: Vec<_> = found.changes.iter().map(|change| change.verdict).collect();
    let same = Verdict::Equivalent;
    assert_eq!(verdicts, [same, Verdict::More, same, same]);
    let slower = &found.changes[1];
    assert!((slower.ratio.unwrap() - 1.3).abs() < 0.03 && slower.p_holm.unwrap() < 0.001, "{slower:?}");
    let [required] = found.requirements.as_slice() else { panic!() };
    assert_eq!(required.verdict, RequirementVerdict::NotMet);
    let tests: Vec<_> = required.tests.iter().map(|test| test.verdict == RequirementVerdict::NotMet).collect();
    assert_eq!(tests, [false, true, false, false]);
}

#[test]
fn a_run_against_itself_is_equivalent_and_meets_its_requirements() {
    let run = records(20, SAME);
    let found = compare(&run, &run, &["p50 5 % worse"]);
    assert!(found.changes.iter().all(|change| change.verdict == Verdict::Equivalent && change.ratio == Some(1.0)));
    assert_eq!(found.requirements[0].verdict, RequirementVerdict::Met);
    assert_eq!(found.floors.len(), 2);
    assert!(found.floors.iter().all(|floor| !floor.drifted && floor.ratios[0] == floor.ratios[1]));
}

#[test]
fn few_trials_are_preliminary() {
    let found = compare(&records(9, SAME), &records(9, [9e6; 4]), &["p50 5 % worse"]);
    let few = CannotTell::TooFewBlocks;
    assert!(found.changes.iter().all(|change| change.verdict == Verdict::CannotTell { why: few }));
    assert_eq!(found.requirements[0].verdict, RequirementVerdict::CannotTell { why: few });
}

#[test]
fn a_run_with_more_failures_is_not_called_faster() {
    let mut second = records(20, [0.5e6, 2e6, 3e6, 4e6]);
    for record in second.iter_mut().filter(|record| record.trial.cell == 0) {
        record.values.insert("error_share".to_owned(), Value::Measured(0.2));
    }
    let mut first = records(20, SAME);
    for record in &mut first {
        record.values.insert("error_share".to_owned(), Value::Measured(0.0));
    }
    let found = compare(&first, &second, &["p50 5 % worse"]);
    assert_eq!(found.changes[0].verdict, Verdict::CannotTell { why: CannotTell::UnequalFailures });
    assert_eq!(
        found.requirements[0].tests[0].verdict,
        RequirementVerdict::CannotTell { why: CannotTell::UnequalFailures }
    );
}

#[test]
fn failed_trials_of_the_second_run_count_as_worse_than_every_value() {
    let mut second = records(20, SAME);
    for record in second.iter_mut().filter(|record| record.trial.cell == 3) {
        if record.trial.block >= 4 {
            record.outcome = Outcome::failed(Blame::Server, "the server ended");
        }
    }
    let found = compare(&records(20, SAME), &second, &[]);
    let change = &found.changes[3];
    assert_eq!((change.trials, change.medians[1], change.ratio), ([20, 20], None, None));
    assert_eq!(change.verdict, Verdict::More);
}

#[test]
fn a_change_as_large_as_the_noise_within_a_run_is_no_change() {
    // The A/A pair of the second run, cells 4 against 0, differs by a tenth.
    let mut second = records(20, SAME.map(|level| level * 1.08));
    for record in second.iter_mut().filter(|record| record.trial.cell == 4) {
        let Some(Value::Measured(value)) = record.values.get_mut("response_median") else { panic!() };
        *value *= 1.1;
    }
    let found = compare(&records(20, SAME), &second, &["p50 5 % worse"]);
    let noise = Verdict::CannotTell { why: CannotTell::NoiseFloor };
    assert!(found.changes.iter().all(|change| change.verdict == noise), "{:?}", found.changes);
    assert_eq!(found.requirements[0].verdict, RequirementVerdict::CannotTell { why: CannotTell::NoiseFloor });
    let floors: Vec<_> = found.floors.iter().map(|floor| floor.drifted).collect();
    assert_eq!(floors, [true, false]);
}
