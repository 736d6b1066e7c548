//! Null references: their cells, blocks and order.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wirelab_model::plan::{Job, Plan, Trial};
use wirelab_model::planted::SIZES;
use wirelab_model::reference::{self, CellReference, NotReferenced, References};
use wirelab_model::units::Share;

use crate::order;

/// Streams of the plan's generator from here on belong to null references: their positions, and from twice this number
/// on their order.
const STREAMS: u64 = 1 << 34;

/// A reference trial of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReferenceTrial {
    /// Position of the trial of the plan that it precedes; after all of them if it equals their number.
    pub before: u32,
    /// The trial, which repeats its cell.
    pub trial: Trial,
}

/// Decides the null references of a plan. `unavailable` says whether the lab and the null server exclude a job.
#[must_use]
pub fn references(plan: &Plan, time: Share, unavailable: impl Fn(&Job) -> Option<NotReferenced>) -> References {
    let mut jobs: Vec<(usize, Job)> = Vec::new();
    let mut of_cell = |(number, job): (usize, &Job)| {
        if time.0 <= 0.0 {
            return CellReference::Nothing(NotReferenced::SwitchedOff);
        }
        let job = match reference::job(job) {
            Ok(job) => job,
            Err(why) => return CellReference::Nothing(why),
        };
        if let Some((first, _)) = jobs.iter().find(|(_, known)| *known == job) {
            return CellReference::Shared(*first);
        }
        if let Some(why) = unavailable(&job) {
            return CellReference::Nothing(why);
        }
        jobs.push((number, job));
        CellReference::Shared(number)
    };
    let cells = plan.cells.iter().map(|cell| &cell.job).enumerate().map(&mut of_cell).collect();
    References { time, cells }
}

/// The reference trials of a block, in the order of their positions.
///
/// Their number is that of the blocks so far times the plan's cells times `time / (1 - time)`, at most one of each
/// reference in a block. The references take turns, in random order in each round. Numbers of trials follow those of
/// planted effects, and depend on the plan and the block only. All trials of a block share its seed.
#[must_use]
pub fn reference_trials(plan: &Plan, references: &References, number: u32) -> Vec<ReferenceTrial> {
    let repeated = references.repeated();
    let Some(ordinary) = order::block(plan, number).first().copied().filter(|_| !repeated.is_empty()) else {
        return Vec::new();
    };
    let (cells, count) = (plan.cells.len() as u32, repeated.len() as u64);
    let each = f64::from(cells) * references.time.0 / (1.0 - references.time.0).max(f64::EPSILON);
    // A share of 10 % of nine cells is one trial, whatever the rounding.
    let until = |blocks: u32| (f64::from(blocks) * each.min(count as f64) + 1e-6).floor() as u64;
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    random.set_stream(STREAMS + u64::from(number));
    let first = plan.max_blocks.saturating_mul(cells + SIZES.len() as u32);
    let trial = |turn: u64| {
        let place = in_turn(plan.seed, turn, repeated.len());
        let before = random.random_range(0..=cells);
        let number = first.saturating_add(number.saturating_mul(count as u32)).saturating_add(place as u32);
        ReferenceTrial { before, trial: Trial { number, position: before, cell: repeated[place], ..ordinary } }
    };
    let mut trials: Vec<_> = (until(number)..until(number + 1)).map(trial).collect();
    // Two rounds can meet in a block.
    trials.sort_by_key(|reference| (reference.trial.number, reference.before));
    trials.dedup_by_key(|reference| reference.trial.number);
    trials.sort_by_key(|reference| reference.before);
    trials
}

/// The place of the reference whose turn it is.
fn in_turn(seed: u64, turn: u64, count: usize) -> usize {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(2 * STREAMS + turn / count as u64);
    let mut places: Vec<usize> = (0..count).collect();
    places.shuffle(&mut random);
    places[(turn % count as u64) as usize]
}

/// The plan with a further cell, the last one, that repeats a cell with the null server. `None` for a cell without a
/// reference.
#[must_use]
pub fn with_null_server(plan: &Plan, cell: usize) -> Option<Plan> {
    let mut plan = plan.clone();
    let mut repeated = plan.cells.get(cell).cloned()?;
    repeated.job = reference::job(&repeated.job).ok()?;
    repeated.levels.insert("server".to_owned(), "null".to_owned());
    plan.cells.push(repeated);
    Some(plan)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use wirelab_model::plan::Target;
    use wirelab_model::protocol::Protocol;

    use super::*;

    fn plan(rest: &str) -> Plan {
        let head = "name = 'a'\ntitle = 'a'\nquestion = 'a'\n";
        crate::plan(&crate::parse(&format!("{head}{rest}"), "study.toml").unwrap()).unwrap().0
    }

    fn no_h3(job: &Job) -> Option<NotReferenced> {
        (job.protocol == Protocol::H3).then_some(NotReferenced::Protocol { protocol: Protocol::H3 })
    }

    fn of(plan: &Plan) -> Vec<CellReference> {
        references(plan, Share(0.2), no_h3).cells
    }

    #[test]
    fn cells_share_a_reference_if_only_their_servers_differ() {
        use CellReference::Shared;
        let plan = plan(
            "[factors]\nserver = ['builtin', 'nginx']\nprotocol = ['h1', 'h2']\n[compare]\nfactor = 'server'\nbaseline = 'nginx'\n",
        );
        // Two servers, two protocols, and two twins of the baseline.
        assert_eq!(of(&plan), [0, 1, 0, 1, 0, 1].map(Shared));
    }

    #[test]
    fn a_cell_without_a_reference_has_the_reason() {
        let why = |workload: &str, protocols: &str| {
            let plan = plan(&format!(
                "[workload]\n{workload}\n[factors]\nprotocol = {protocols}\n[compare]\nfactor = 'protocol'\nbaseline = 'h1'\n"
            ));
            of(&plan)[1].clone()
        };
        let nothing = CellReference::Nothing;
        assert_eq!(why("", "['h1', 'h3']"), nothing(NotReferenced::Protocol { protocol: Protocol::H3 }));
        assert_eq!(why("exchange = 'delay'\ndelay = '1 ms'", "['h1', 'h2']"), nothing(NotReferenced::Delay));
        assert_eq!(why("", "['h1', 'h2']"), CellReference::Shared(1));
        let plan = plan("[factors]\nprotocol = ['h1', 'h2']\n[compare]\nfactor = 'protocol'\nbaseline = 'h1'\n");
        let off = references(&plan, Share(0.0), no_h3);
        assert!(off.cells.iter().all(|cell| *cell == nothing(NotReferenced::SwitchedOff)));
        assert!(reference_trials(&plan, &off, 0).is_empty());
    }

    #[test]
    fn references_take_turns_at_random_positions_and_are_at_most_their_share() {
        let plan = plan(
            "[factors]\nprotocol = ['h1', 'h2']\npayload = ['1 B', '2 B', '3 B']\n[compare]\nfactor = 'protocol'\nbaseline = 'h1'\n[blocks]\nmax = 30\n",
        );
        let references = references(&plan, Share(0.25), no_h3);
        let mut count = std::collections::BTreeMap::new();
        let (mut numbers, mut positions) = (HashSet::new(), HashSet::new());
        for block in 0..30 {
            let trials = reference_trials(&plan, &references, block);
            assert!(trials.is_sorted_by_key(|trial| trial.before));
            for trial in trials {
                *count.entry(trial.trial.cell).or_insert(0) += 1;
                assert!(numbers.insert(trial.trial.number), "a number is used once");
                assert_eq!(trial.trial.seed, order::block(&plan, block)[0].seed);
                positions.insert(trial.before);
            }
        }
        // Nine cells, so three reference trials in a block, of six references.
        assert!(numbers.len() >= 85 && count.len() == 6, "{count:?}");
        assert!(count.values().all(|count| (13..=15).contains(count)), "{count:?}");
        assert!(positions.len() == 10, "{positions:?}");
        assert!(numbers.iter().all(|number| *number >= 30 * (9 + 3)));
    }

    #[test]
    fn the_added_cell_has_the_null_server_and_nothing_else_changes() {
        let plan = plan("[factors]\nprotocol = ['h1', 'h2']\n[compare]\nfactor = 'protocol'\nbaseline = 'h1'\n");
        let added = with_null_server(&plan, 1).unwrap();
        assert_eq!(added.cells[..plan.cells.len()], plan.cells[..]);
        let cell = added.cells.last().unwrap();
        assert_eq!(cell.job.server().unwrap(), "engine");
        let Target::Servers(servers) = &plan.cells[1].job.target else { panic!("a server") };
        let mut job = cell.job.clone();
        job.target = Target::Servers(servers.clone());
        assert_eq!(job, plan.cells[1].job);
    }
}
