use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use wirelab_model::journal::TrialRecord;
use wirelab_model::metric::Metric;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::plan::{Cell, Plan};

use super::*;
use crate::analysis::{Analysis, Moment};
use crate::fixture::{self, record, wobble};

const COLOURS: [&str; 3] = ["red", "blue", "green"];

/// Cells 0 to 2: red, blue, green, small; 3 to 5 the same, large. And so on for further sizes.
fn plan(sizes: usize) -> Plan {
    let plan = fixture::plan();
    let cell = |size: usize, colour: &str| {
        let levels = [("colour", colour.to_owned()), ("size", size.to_string())];
        Cell { levels: levels.map(|(f, l)| (f.to_owned(), l)).into(), twin_of: None, job: plan.cells[0].job.clone() }
    };
    let cells = (0..sizes).flat_map(|size| COLOURS.map(|colour| cell(size, colour))).collect();
    Plan { cells, comparisons: Vec::new(), ..plan.clone() }
}

/// The contests of median response times, by cell and block.
fn analyse(sizes: usize, blocks: u32, value: impl FnMut(usize, u32) -> f64) -> Vec<Contest> {
    of(sizes, &records(sizes, blocks, value)).contests
}

fn records(sizes: usize, blocks: u32, mut value: impl FnMut(usize, u32) -> f64) -> Vec<TrialRecord> {
    let trials = (0..blocks).flat_map(|block| (0..3 * sizes).map(move |cell| (cell, block)));
    trials.map(|(cell, block)| record(cell, block, &[("response_median", value(cell, block))])).collect()
}

fn of(sizes: usize, records: &[TrialRecord]) -> Analysis {
    crate::analyse(&fixture::study(&json!({})), &plan(sizes), records, &[], Moment::Ended)
}

fn standings(contest: &Contest) -> Vec<(usize, Standing)> {
    contest.rivals.iter().map(|rival| (rival.cell, rival.standing)).collect()
}

#[test]
fn a_level_that_beats_every_other_is_the_best() {
    let levels = [1000.0, 700.0, 500.0];
    let contest = &analyse(1, 12, |cell, block| levels[cell] * wobble(cell, block))[0];
    assert_eq!((contest.leader, contest.outcome), (Some(2), ContestOutcome::Best));
    assert_eq!(standings(contest), [(1, Standing::Beaten), (0, Standing::Beaten)]);
    let second = &contest.rivals[0];
    assert!((second.ratio.unwrap() - 500.0 / 700.0).abs() < 0.02 && second.interval.unwrap().high < 0.75, "{second:?}");
    // Three pairs, each with 12 blocks on one side.
    assert_eq!((second.p, second.p_holm), (Some(2.0 / 4096.0), Some(6.0 / 4096.0)));
}

#[test]
fn two_levels_that_beat_the_third_but_not_each_other_leave_the_contest_open() {
    // The first two differ by 6 % with 8 % of scatter between their trials.
    let scatter = |cell: usize, block: u32| if (block + cell as u32).is_multiple_of(2) { 1.08 } else { 0.92 };
    let levels = [940.0, 1000.0, 3000.0];
    let contest = &analyse(1, 12, |cell, block| levels[cell] * scatter(cell, block))[0];
    assert_eq!(contest.outcome, ContestOutcome::Undecided);
    assert_eq!(standings(contest), [(1, Standing::Open), (2, Standing::Beaten)]);
}

#[test]
fn levels_within_the_margin_tie_and_share_the_place_before_the_rest() {
    let levels = [1000.0, 1001.0, 2000.0];
    let contest = &analyse(1, 12, |cell, block| levels[cell] * wobble(cell, block))[0];
    assert_eq!(contest.outcome, ContestOutcome::Tied);
    let mut standings = standings(contest);
    standings.sort_by_key(|(cell, _)| *cell == 2);
    assert_eq!((standings[0].1, standings[1]), (Standing::Tied, (2, Standing::Beaten)));
}

#[test]
fn too_few_blocks_never_make_a_winner() {
    let levels = [1000.0, 700.0, 100.0];
    let contest = &analyse(1, 9, |cell, block| levels[cell] * wobble(cell, block))[0];
    assert_eq!((contest.leader, contest.outcome), (Some(2), ContestOutcome::Undecided));
    assert_eq!(contest.rivals[0].verdict, Verdict::CannotTell { why: CannotTell::TooFewBlocks });
}

#[test]
fn the_family_is_all_pairs_under_all_combinations() {
    let contests = analyse(24, 11, |cell, block| 100.0 * (cell % 3 + 1) as f64 * wobble(cell, block));
    assert_eq!(contests.len(), 24);
    assert_eq!(contests[0].blocks_needed, 12);
    // The 48 comparisons with a baseline would have their verdicts with 11 blocks.
    assert!(contests.iter().all(|contest| contest.outcome == ContestOutcome::Undecided));
}

#[test]
fn a_level_without_values_is_no_rival_and_alone_there_is_no_contest() {
    let levels = [1000.0, 700.0, 500.0];
    let mut all = records(1, 12, |cell, block| levels[cell] * wobble(cell, block));
    let fail = |record: &mut TrialRecord| record.outcome = Outcome::failed(Blame::Server, "it crashed");
    all.iter_mut().filter(|record| record.trial.cell == 2).for_each(fail);
    let contest = &of(1, &all).contests[0];
    assert_eq!((contest.leader, contest.outcome), (Some(1), ContestOutcome::Best));
    assert_eq!(standings(contest), [(0, Standing::Beaten), (2, Standing::Absent)]);
    all.iter_mut().filter(|record| record.trial.cell == 1).for_each(fail);
    assert_eq!(of(1, &all).contests[0].outcome, ContestOutcome::NoContest);
    all.iter_mut().for_each(fail);
    let contest = &of(1, &all).contests[0];
    assert_eq!((contest.leader, contest.outcome, contest.rivals.len()), (None, ContestOutcome::NoContest, 3));
}

#[test]
fn levels_that_fail_in_half_of_the_blocks_do_not_lead_and_are_open() {
    let mut all = records(1, 24, |cell, block| 100.0 * (cell + 1) as f64 * wobble(cell, block));
    let fails = |record: &TrialRecord| record.trial.cell < 2 && record.trial.block as usize % 2 == record.trial.cell;
    for record in all.iter_mut().filter(|record| fails(record)) {
        record.outcome = Outcome::failed(Blame::Server, "it crashed");
    }
    let contest = &of(1, &all).contests[0];
    assert_eq!((contest.leader, contest.outcome), (Some(2), ContestOutcome::Undecided));
    assert_eq!(standings(contest), [(0, Standing::Open), (1, Standing::Open)]);
}

#[test]
fn the_largest_value_leads_if_higher_is_better() {
    let (study, plan) = (
        fixture::study(&json!({ "compare": { "factor": "colour", "baseline": "red", "metrics": ["goodput"] } })),
        plan(1),
    );
    let value = |cell: usize, block: u32| [10.0, 30.0, 20.0][cell] * wobble(cell, block);
    let trials = (0..12).flat_map(|block| (0..3).map(move |cell| (cell, block)));
    let all: Vec<_> = trials.map(|(cell, block)| record(cell, block, &[("goodput", value(cell, block))])).collect();
    let metrics: Vec<&Metric> = crate::METRICS.iter().collect();
    let contest = &crate::analyse(&study, &plan, &all, &metrics, Moment::Ended).contests[0];
    assert_eq!((contest.leader, contest.outcome), (Some(1), ContestOutcome::Best));
    assert_eq!(standings(contest), [(2, Standing::Beaten), (0, Standing::Beaten)]);
}

#[test]
fn an_aa_twin_does_not_compete() {
    let all = fixture::records(12, [1000.0, 800.0, 8000.0, 8000.0]);
    let contests = fixture::analyse(&all).contests;
    assert_eq!(contests.len(), 2);
    assert!(contests.iter().all(|contest| contest.rivals.len() == 1));
}

/// 100 studies of 4 contests between 3 equal levels, trials scattered by 10 %: a level beaten anywhere is a false
/// statement, and has to be in about 5 of them at most.
#[test]
fn equal_levels_seldom_have_a_winner() {
    let mut wrong = 0;
    for seed in 0..100 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // About normal: the sum of 12 uniform numbers.
        let mut normal = || (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let contests = analyse(4, 12, |_, _| 1e6 * (0.1 * normal()).exp());
        let beaten = |contest: &Contest| contest.rivals.iter().any(|rival| rival.standing == Standing::Beaten);
        wrong += u32::from(contests.iter().any(beaten));
    }
    assert!(wrong <= 5, "{wrong} of 100");
}
