use indexmap::IndexMap;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::plan::{Cell, OwnServers, Plan, Target};

use super::*;
use crate::analysis::{CannotTell, Verdict};
use crate::fixture::{self, record, wobble};

/// Tables of clients and servers, one for each of `colours`; the cells of a table by client, then server.
fn plan(colours: usize, clients: usize, servers: usize) -> Plan {
    let mut plan = fixture::plan();
    let template = plan.cells[0].clone();
    let cells = (0..colours * clients * servers).map(|number| {
        let (client, server) = (format!("c{}", number / servers % clients), format!("s{}", number % servers));
        let colour = format!("colour {}", number / servers / clients);
        let mut job = template.job.clone();
        job.client.clone_from(&client);
        job.target = Target::Servers(OwnServers::one(&server));
        let levels = [("colour", colour), ("client", client), ("server", server)];
        Cell { levels: levels.map(|(factor, level)| (factor.to_owned(), level)).into(), twin_of: None, job }
    });
    plan.cells = cells.collect();
    plan.comparisons = Vec::new();
    plan
}

fn records(plan: &Plan, blocks: u32, mut value: impl FnMut(usize, u32) -> f64) -> Vec<TrialRecord> {
    let trials = (0..blocks).flat_map(|block| (0..plan.cells.len()).map(move |cell| (cell, block)));
    trials.map(|(cell, block)| record(cell, block, &[("response_median", value(cell, block))])).collect()
}

fn tables(plan: &Plan, records: &[TrialRecord]) -> Vec<PairTable> {
    pairs(&fixture::study(&json!({})), plan, &Trials::of(plan, records, &[]), &mut Bootstrap::new(1))
}

/// Client 1 takes twice as long as client 0, and so on; servers differ by 30 %.
fn sides(cell: usize, servers: usize, clients: usize) -> f64 {
    1e5 * 2_f64.powi((cell / servers % clients) as i32) * 1.3_f64.powi((cell % servers) as i32)
}

fn by_name(table: &PairTable) -> IndexMap<String, &Pair> {
    table.pairs.iter().map(|pair| (format!("{}>{}", pair.client, pair.server), pair)).collect()
}

#[test]
fn differences_between_sides_are_no_interaction() {
    let plan = plan(1, 4, 4);
    let all = records(&plan, 14, |cell, block| sides(cell, 4, 4) * (1.0 + (wobble(cell, block) - 1.0) / 4.0));
    let [table] = &tables(&plan, &all)[..] else { panic!("one table") };
    assert_eq!((table.clients.len(), table.servers.len(), table.pairs.len(), table.blocks_needed), (4, 4, 16, 10));
    for pair in &table.pairs {
        assert_eq!(pair.verdict, Verdict::Equivalent, "{pair:?}");
        let ratio = pair.predicted.unwrap() / sides(pair.cell, 4, 4);
        assert!((ratio - 1.0).abs() < 0.02 && pair.blocks == 14, "{pair:?}");
    }
}

#[test]
fn odd_pairs_are_found_in_full_size_and_their_neighbours_stay_normal() {
    let plan = plan(2, 4, 4);
    // In the first table only: one slower, one faster, with different clients and servers.
    let odd = |cell: usize| match cell {
        5 => 1.5,
        10 => 0.7,
        _ => 1.0,
    };
    let all = records(&plan, 14, |cell, block| sides(cell, 4, 4) * odd(cell) * wobble(cell, block));
    let tables = tables(&plan, &all);
    for (table, pair) in tables.iter().flat_map(|table| table.pairs.iter().map(move |pair| (table, pair))) {
        let expected = match pair.cell {
            5 => Some(Verdict::More),
            10 => Some(Verdict::Less),
            _ => None,
        };
        match expected {
            Some(verdict) => assert_eq!(pair.verdict, verdict, "{pair:?}"),
            None => assert!(!matches!(pair.verdict, Verdict::Less | Verdict::More), "{:?}: {pair:?}", table.levels),
        }
        let interval = pair.interval.unwrap();
        assert!(interval.low <= odd(pair.cell) * 1.02 && interval.high >= odd(pair.cell) / 1.02, "{pair:?}");
        assert!((pair.interaction.unwrap() / odd(pair.cell) - 1.0).abs() < 0.03, "{pair:?}");
    }
    assert_eq!((tables.len(), tables[0].blocks_needed), (2, 11));
}

#[test]
fn a_pair_that_fails_has_no_interaction_and_the_others_still_have() {
    let plan = plan(1, 3, 4);
    let mut all = records(&plan, 12, |cell, block| sides(cell, 4, 3) * wobble(cell, block));
    // One pair never works; one fails in three blocks of twelve; one in seven, more than half of them.
    let fails = |record: &TrialRecord| match record.trial.cell {
        3 => true,
        6 => record.trial.block < 3,
        9 => record.trial.block < 7,
        _ => false,
    };
    for record in all.iter_mut().filter(|record| fails(record)) {
        record.outcome = Outcome::failed(Blame::Client, "it hangs");
    }
    let [table] = &tables(&plan, &all)[..] else { panic!("one table") };
    let pairs = by_name(table);
    for name in ["c0>s3", "c2>s1"] {
        let pair = pairs[name];
        assert_eq!((pair.predicted, pair.interaction, pair.p), (None, None, None));
        assert_eq!(pair.verdict, Verdict::CannotTell { why: CannotTell::NoValues });
    }
    assert_eq!((pairs["c1>s2"].blocks, pairs["c0>s0"].blocks), (9, 12));
    assert_eq!(pairs["c1>s2"].verdict, Verdict::CannotTell { why: CannotTell::TooFewBlocks });
    let known = table.pairs.iter().filter_map(|pair| pair.interaction);
    assert!(known.clone().count() == 10 && known.into_iter().all(|interaction| (interaction - 1.0).abs() < 0.03));
}

#[test]
fn one_client_or_one_block_gives_no_prediction() {
    let one = plan(1, 1, 4);
    let tables_of = |plan: &Plan, blocks| {
        tables(plan, &records(plan, blocks, |cell, block| sides(cell, 4, 4) * wobble(cell, block)))
    };
    assert!(tables_of(&one, 12)[0].pairs.iter().all(|pair| pair.interaction.is_none() && pair.blocks == 0));
    let once = &tables_of(&plan(1, 3, 4), 1)[0];
    assert!(once.pairs.iter().all(|pair| pair.interaction.is_some() && pair.interval.is_none()));
    assert!(once.pairs.iter().all(|pair| pair.verdict == Verdict::CannotTell { why: CannotTell::TooFewBlocks }));
}

#[test]
fn factors_without_endpoints_make_no_table() {
    let mut plan = plan(1, 2, 2);
    let all = records(&plan, 10, |_, _| 1.0);
    for cell in &mut plan.cells {
        cell.job.client = "builtin".to_owned();
    }
    assert!(tables(&plan, &all).is_empty());
    let without = Plan { cells: fixture::plan().cells, ..plan };
    assert!(tables(&without, &all).is_empty());
}

/// 100 studies of 16 pairs without interaction but one, trials scattered by 10 %: any false verdict has to be in about
/// 5 of them at most, the planted one is nearly always found.
#[test]
fn verdicts_on_pairs_are_seldom_wrong() {
    let plan = plan(1, 4, 4);
    let (mut wrong, mut found) = (0, 0);
    for seed in 0..100 {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        // About normal: the sum of 12 uniform numbers.
        let mut normal = || (0..12).map(|_| random.random_range(0.0..1.0)).sum::<f64>() - 6.0;
        let odd = |cell| if cell == 6 { 1.5 } else { 1.0 };
        let all = records(&plan, 16, |cell, _| sides(cell, 4, 4) * odd(cell) * (0.1 * normal()).exp());
        let told = |pair: &&Pair| matches!(pair.verdict, Verdict::Less | Verdict::More);
        let table = &tables(&plan, &all)[0];
        wrong += u32::from(table.pairs.iter().filter(told).any(|pair| pair.cell != 6));
        found += u32::from(table.pairs[6].verdict == Verdict::More);
    }
    assert!(wrong <= 5 && found >= 90, "{wrong} wrong, {found} found of 100");
}
