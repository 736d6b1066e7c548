//! Planted effects: in which cell, in which blocks, and in which order.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use wirelab_model::plan::{BUILTIN, Course, Job, OwnServers, Plan, Reach, Requests, Target, Trial, Work};
use wirelab_model::planted::{NotPlanted, Planting, SIZES};
use wirelab_model::settings::Exchange;
use wirelab_model::spec::Schedule;
use wirelab_model::units::{Share, Span};

use crate::order;

/// Streams of the plan's generator below this number belong to the order of blocks.
const STREAMS: u64 = 1 << 32;

/// A planted trial of a block.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PlantedTrial {
    /// The size of its effect.
    pub size: Share,
    /// Position of the trial of the plan that it precedes; after all of them if it equals their number.
    pub before: u32,
    /// The trial; its cell is the baseline cell.
    pub trial: Trial,
}

/// Chooses the cell of planted effects: the first baseline cell in which their true size is known.
#[must_use]
pub fn planting(plan: &Plan, time: Share) -> Planting {
    if time.0 <= 0.0 {
        return Planting::Nothing(NotPlanted::SwitchedOff);
    }
    let baselines = plan.comparisons.iter().filter(|comparison| comparison.aa).map(|comparison| comparison.baseline);
    let mut obstacle = None;
    for cell in baselines {
        match plan.cells.get(cell).map(|cell| check(&cell.job)) {
            Some(Ok(())) => return Planting::Effects { cell, time },
            Some(Err(why)) => obstacle = obstacle.or(Some(why)),
            None => {}
        }
    }
    // Plans for foreign hosts have no A/A pair.
    Planting::Nothing(obstacle.unwrap_or(NotPlanted::Site))
}

/// Checks that more work in the server delays each response by just this work.
fn check(job: &Job) -> Result<(), NotPlanted> {
    let Target::Servers(servers) = &job.target else { return Err(NotPlanted::Site) };
    let requests = match &job.work {
        Work::Requests(requests) => requests,
        Work::Page(_) => return Err(NotPlanted::Page),
        Work::Own(_) => return Err(NotPlanted::OwnRequests),
    };
    if job.own_client.is_some() {
        return Err(NotPlanted::OwnClient);
    }
    if servers.endpoint != BUILTIN {
        return Err(NotPlanted::OtherServer { server: servers.endpoint.clone() });
    }
    if job.course != Course::Steady {
        return Err(NotPlanted::Timeline);
    }
    if !is_direct(servers) {
        return Err(NotPlanted::Indirect);
    }
    if job.load.clients != 1 || !matches!(job.load.schedule, Schedule::Closed { workers: 1, .. }) {
        return Err(NotPlanted::Concurrent);
    }
    if job.protocol.is_http() && has_body(requests) {
        return Err(NotPlanted::Echo);
    }
    Ok(())
}

fn is_direct(servers: &OwnServers) -> bool {
    servers.places.count() == 1 && !matches!(servers.reach, Reach::Mesh(_) | Reach::ControlPlane(_))
}

fn has_body(requests: &Requests) -> bool {
    requests.exchange == Exchange::Echo || requests.request_size.bytes() > 0
}

/// The planted trials of a block, in the order of their positions.
///
/// Their number is that of the blocks so far times the plan's cells times `time / (1 - time)`, at most one trial of
/// each size in a block. The sizes take turns. Numbers of trials follow those of the plan's last block, and depend on
/// the plan and the block only. All trials of a block share its seed.
#[must_use]
pub fn planted_trials(plan: &Plan, planting: &Planting, number: u32) -> Vec<PlantedTrial> {
    let Planting::Effects { cell, time } = planting else { return Vec::new() };
    let Some(ordinary) = order::block(plan, number).first().copied() else { return Vec::new() };
    let cells = plan.cells.len() as u32;
    let (sizes, each) = (SIZES.len() as u32, f64::from(cells) * time.0 / (1.0 - time.0).max(f64::EPSILON));
    // A share of 10 % of nine cells is one trial, whatever the rounding.
    let until = |blocks: u32| (f64::from(blocks) * each.min(f64::from(sizes)) + 1e-6).floor() as u64;
    let mut random = ChaCha8Rng::seed_from_u64(plan.seed);
    random.set_stream(STREAMS + u64::from(number));
    let first = plan.max_blocks.saturating_mul(cells);
    let trial = |turn: u64| {
        let size = turn as u32 % sizes;
        let before = random.random_range(0..=cells);
        let number = first.saturating_add(number * sizes + size);
        let trial = Trial { number, position: before, cell: *cell, ..ordinary };
        PlantedTrial { size: SIZES[size as usize], before, trial }
    };
    let mut trials: Vec<_> = (until(number)..until(number + 1)).map(trial).collect();
    trials.sort_by_key(|planted| planted.before);
    trials
}

/// The plan with a further cell, the last one, that repeats a cell with more work in its server.
#[must_use]
pub fn with_work(plan: &Plan, cell: usize, size: Share, work: Span) -> Plan {
    let mut plan = plan.clone();
    if let Some(mut planted) = plan.cells.get(cell).cloned() {
        planted.levels.insert("planted".to_owned(), size.to_string());
        if let Target::Servers(servers) = &mut planted.job.target {
            servers.added_work = work;
        }
        plan.cells.push(planted);
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(study: &str) -> Plan {
        crate::plan(&crate::parse(study, "study.toml").unwrap()).unwrap().0
    }

    const HEAD: &str = "name = 'a'\ntitle = 'a'\nquestion = 'a'\n";
    const COMPARE: &str = "[compare]\nfactor = 'protocol'\nbaseline = 'h1'\n";

    fn of(workload: &str, factors: &str) -> Plan {
        plan(&format!("{HEAD}[workload]\n{workload}\n[factors]\n{factors}\n{COMPARE}"))
    }

    const TIME: Share = Share(0.1);

    fn why(workload: &str) -> NotPlanted {
        match planting(&of(workload, "protocol = ['h1', 'h2']"), TIME) {
            Planting::Nothing(why) => why,
            effects => panic!("{effects:?}"),
        }
    }

    #[test]
    fn the_first_baseline_cell_with_one_request_at_a_time_is_chosen() {
        let plan = of("connections = 'per-request'", "workers = [4, 1]\nprotocol = ['h2', 'h1']");
        let Planting::Effects { cell, time } = planting(&plan, TIME) else { panic!("an eligible cell") };
        assert_eq!((plan.cells[cell].label().as_str(), time), ("workers=1 protocol=h1", TIME));
        assert_eq!(planting(&plan, Share(0.0)), Planting::Nothing(NotPlanted::SwitchedOff));
    }

    #[test]
    fn cells_whose_true_effect_is_unknown_have_a_reason() {
        assert_eq!(why("workers = 2"), NotPlanted::Concurrent);
        assert_eq!(why("rate = '100/s'"), NotPlanted::Concurrent);
        assert_eq!(why("exchange = 'echo'"), NotPlanted::Echo);
        assert_eq!(why("server = 'nginx'"), NotPlanted::OtherServer { server: "nginx".to_owned() });
    }

    #[test]
    fn a_tenth_of_the_trials_is_planted_and_the_sizes_take_turns() {
        // 2 protocols and 3 payloads with 3 twins.
        let plan = of("", "protocol = ['h1', 'h2']\npayload = ['1 KiB', '2 KiB', '3 KiB']");
        let planting = planting(&plan, TIME);
        let all: Vec<_> = (0..30).flat_map(|block| planted_trials(&plan, &planting, block)).collect();
        assert_eq!((plan.cells.len(), all.len()), (9, 30));
        for size in SIZES {
            assert_eq!(all.iter().filter(|planted| planted.size == size).count(), 10);
        }
        let few = of("", "protocol = ['h1', 'h2']");
        let few = (0..30).flat_map(|block| planted_trials(&few, &super::planting(&few, TIME), block)).count();
        assert_eq!(few, 10, "three cells allow a trial in every third block");
    }

    #[test]
    fn a_large_study_plants_every_size_once_in_every_block_at_random_positions() {
        let plan = of("", "protocol = ['h1', 'h2', 'h3']\npayload = ['1 B', '2 B', '3 B', '4 B', '5 B', '6 B', '7 B']");
        let planting = planting(&plan, TIME);
        let mut numbers = std::collections::HashSet::new();
        let mut positions = std::collections::HashSet::new();
        for block in 0..plan.max_blocks {
            let trials = planted_trials(&plan, &planting, block);
            assert_eq!(trials.len(), 3);
            assert!(trials.is_sorted_by_key(|planted| planted.before));
            assert!(trials.iter().all(|planted| planted.trial.seed == order::block(&plan, block)[0].seed));
            numbers.extend(trials.iter().map(|planted| planted.trial.number));
            positions.extend(trials.iter().map(|planted| planted.before));
        }
        assert_eq!(numbers.len() as u32, 3 * plan.max_blocks);
        assert!(numbers.iter().all(|number| *number >= plan.max_blocks * plan.cells.len() as u32));
        assert!(positions.len() > 20, "{positions:?}");
    }
}
