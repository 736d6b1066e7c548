//! Properties of plans and blocks.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wirelab_model::network::{Network, Servers};
use wirelab_model::settings::Settings;
use wirelab_model::study::Study;
use wirelab_model::warning::Warning;
use wirelab_plan::{block, parse, plan, plan_in};

/// A study with factors of these numbers of levels, a baseline, and excluded combinations.
fn study(levels: &[usize], baseline: usize, exclude: &[Vec<usize>], seed: u64) -> Study {
    let mut text = String::from("name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n");
    text += &format!("seed = {seed}\n[workload]\nprotocol = \"h1\"\n[factors]\n");
    for (factor, count) in levels.iter().enumerate() {
        let names: Vec<_> = (0..*count).map(|level| format!("l{level} = {{}}")).collect();
        text += &format!("f{factor} = {{ {} }}\n", names.join(", "));
    }
    text += &format!("[compare]\nfactor = \"f0\"\nbaseline = \"l{baseline}\"\n");
    for combination in exclude {
        text += "[[exclude]]\n";
        for (factor, level) in combination.iter().enumerate() {
            text += &format!("f{factor} = \"l{}\"\n", level % levels[factor]);
        }
    }
    parse(&text, "x.toml").unwrap()
}

prop_compose! {
    fn studies()(levels in prop::collection::vec(1usize..5, 1..4))(
        baseline in 0..levels[0],
        exclude in prop::collection::vec(prop::collection::vec(0usize..5, levels.len()), 0..3),
        seed in 0u64..1 << 40,
        levels in Just(levels),
    ) -> (Vec<usize>, Vec<Vec<usize>>, Study) {
        let study = study(&levels, baseline, &exclude, seed);
        (levels, exclude, study)
    }
}

fn excluded(exclude: &[Vec<usize>], levels: &[usize]) -> usize {
    let normal = exclude.iter().map(|c| c.iter().zip(levels).map(|(level, count)| level % count).collect::<Vec<_>>());
    normal.collect::<HashSet<_>>().len()
}

/// A configuration with fixed cases, equal in every run.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(fixed(100))]

    #[test]
    fn every_combination_that_is_not_excluded_is_there_once_and_every_baseline_twice((levels, exclude, study) in studies()) {
        let Ok((plan, _)) = plan(&study) else {
            // The exclusions left no cell, or no baseline.
            prop_assert!(!exclude.is_empty());
            return Ok(());
        };
        let originals: Vec<_> = plan.cells.iter().filter(|cell| cell.twin_of.is_none()).collect();
        let distinct: HashSet<_> = originals.iter().map(|cell| cell.label()).collect();
        prop_assert_eq!(originals.len(), levels.iter().product::<usize>() - excluded(&exclude, &levels));
        prop_assert_eq!(distinct.len(), originals.len());
        let baselines = originals.iter().filter(|cell| cell.levels["f0"] == study.compare.baseline).count();
        let twins: Vec<_> = plan.cells.iter().filter_map(|cell| Some((cell, cell.twin_of?))).collect();
        prop_assert_eq!(twins.len(), baselines);
        for (twin, original) in twins {
            prop_assert_eq!(&twin.levels, &plan.cells[original].levels);
            prop_assert_eq!(&twin.job, &plan.cells[original].job);
        }
    }

    #[test]
    fn compared_cells_differ_in_the_compared_factor_only((_, _, study) in studies()) {
        let Ok((plan, _)) = plan(&study) else { return Ok(()) };
        for comparison in &plan.comparisons {
            let (cell, baseline) = (&plan.cells[comparison.cell], &plan.cells[comparison.baseline]);
            prop_assert_eq!(&baseline.levels["f0"], &study.compare.baseline);
            let differing: Vec<_> = cell.levels.iter().filter(|(f, l)| baseline.levels[*f] != **l).map(|(f, _)| f.as_str()).collect();
            prop_assert_eq!(differing, if comparison.aa { vec![] } else { vec!["f0"] });
            prop_assert_eq!(comparison.aa, cell.twin_of == Some(comparison.baseline));
        }
    }

    #[test]
    fn every_block_is_a_permutation_and_needs_no_other_block((_, _, study) in studies(), number in 0u32..1000) {
        let Ok((plan, _)) = plan(&study) else { return Ok(()) };
        let trials = block(&plan, number);
        let mut cells: Vec<_> = trials.iter().map(|trial| trial.cell).collect();
        cells.sort_unstable();
        prop_assert_eq!(cells, (0..plan.cells.len()).collect::<Vec<_>>());
        for (position, trial) in trials.iter().enumerate() {
            prop_assert_eq!((trial.block, trial.position as usize), (number, position));
            prop_assert_eq!(trial.number, number * plan.cells.len() as u32 + position as u32);
            prop_assert_eq!(trial.seed, trials[0].seed);
        }
        prop_assert_eq!(&trials, &block(&plan, number));
        prop_assert_ne!(trials[0].seed, block(&plan, number + 1)[0].seed);
    }

    #[test]
    fn the_same_text_gives_the_same_plan((levels, exclude, study) in studies()) {
        let again = self::study(&levels, study.compare.baseline[1..].parse().unwrap(), &exclude, study.seed);
        prop_assert_eq!(plan(&study), plan(&again));
    }
}

#[test]
fn the_order_changes_from_block_to_block_and_with_the_seed() {
    let orders = |seed| -> Vec<Vec<usize>> {
        let (plan, _) = plan(&study(&[4, 4], 0, &[], seed)).unwrap();
        (0..50).map(|number| block(&plan, number).iter().map(|trial| trial.cell).collect()).collect()
    };
    // 20 cells have 20! orders, so two equal orders in a hundred blocks do not happen by chance.
    let all: HashSet<_> = orders(1).into_iter().chain(orders(2)).collect();
    assert_eq!(all.len(), 100);
}

#[test]
fn every_cell_is_about_as_often_early_as_late() {
    let (plan, _) = plan(&study(&[2, 2], 0, &[], 1)).unwrap();
    let mut counts = vec![vec![0u32; plan.cells.len()]; plan.cells.len()];
    for number in 0..6000 {
        block(&plan, number).iter().for_each(|trial| counts[trial.cell][trial.position as usize] += 1);
    }
    // 6 cells and 6 positions: 1000 expected each, with a standard deviation of 29.
    assert!(counts.iter().flatten().all(|count| (850..1150).contains(count)), "{counts:?}");
}

#[test]
fn the_order_of_a_seed_never_changes() {
    let (plan, _) = plan(&study(&[3, 2], 0, &[], 1)).unwrap();
    let order: Vec<_> = block(&plan, 0).iter().map(|trial| trial.cell).collect();
    assert_eq!(order, GOLDEN_ORDER, "runs of earlier versions could not be resumed or repeated");
}

const GOLDEN_ORDER: [usize; 8] = [7, 1, 4, 3, 5, 2, 0, 6];

#[test]
fn too_few_blocks_for_holm_are_raised_but_never_above_the_maximum() {
    let raised = |max: u32| {
        let mut study = study(&[9, 5, 3], 0, &[], 1);
        (study.blocks.min, study.blocks.max) = (max.min(10), max);
        let (plan, warnings) = plan(&study).unwrap();
        (plan.min_blocks, plan.max_blocks, warnings)
    };
    let warning = |to| vec![Warning::BlocksRaised { from: 10, to, comparisons: 120 }];
    assert_eq!(raised(30), (13, 30, warning(13)));
    assert_eq!(raised(12), (12, 12, warning(12)));
    assert_eq!(raised(3), (3, 3, vec![]));
}

#[test]
fn exclusions_that_leave_nothing_to_compare_are_refused() {
    let text = "name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n[factors]\nprotocol = [\"h1\", \"h2\"]\n[compare]\nfactor = \
                \"protocol\"\nbaseline = \"h1\"\n[[exclude]]\nprotocol = \"h1\"\n";
    let error = plan(&parse(text, "x.toml").unwrap()).unwrap_err().to_string();
    assert_eq!(error, "`exclude`: the exclusions leave no cell of the baseline `h1`");
}

#[test]
fn levels_that_contradict_each_other_name_the_cell_unless_it_is_excluded() {
    let text = "name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n[workload]\nprotocol = \"h1\"\n[factors]\nload = { closed = \
                {}, open = { rate = \"9/s\" } }\nrest = { none = {}, some = { pause = \"1 ms\" } }\n[compare]\nfactor = \
                \"load\"\nbaseline = \"closed\"\n";
    let error = plan(&parse(text, "x.toml").unwrap()).unwrap_err().to_string();
    assert!(error.starts_with("the cell `load=open rest=some` cannot be run: both `rate` and a pause"), "{error}");
    let text = format!("{text}[[exclude]]\nload = \"open\"\nrest = \"some\"\n");
    assert_eq!(plan(&parse(&text, "x.toml").unwrap()).unwrap().0.comparisons.len(), 3);
}

#[test]
fn a_comparison_of_documents_with_echoes_has_a_warning() {
    let text = "name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n[factors]\nprotocol = [\"h1\", \"tls\"]\n[compare]\nfactor = \
                \"protocol\"\nbaseline = \"h1\"\n";
    let warnings = |text: &str| plan(&parse(text, "x.toml").unwrap()).unwrap().1;
    assert!(matches!(warnings(text).as_slice(), [Warning::Parity { what, .. }] if what == "exchange"));
    let text = text.replace("[factors]", "[workload]\nexchange = \"echo\"\n[factors]");
    assert_eq!(warnings(&text), []);
}

#[test]
fn the_defaults_of_the_lab_apply_unless_the_study_says_otherwise() {
    let pods =
        Settings { network: Some(Network::Overlay), placement: Some("same-node".to_owned()), ..Settings::default() };
    let job = |defaults: &Settings, workload: &str| {
        let text = format!(
            "name = \"x\"\ntitle = \"t\"\nquestion = \"q\"\n[workload]\n{workload}\n\
             [factors]\nprotocol = [\"h1\", \"h2\"]\n[compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n"
        );
        plan_in(&parse(&text, "x.toml").unwrap(), defaults).unwrap().0.cells.remove(0).job
    };
    let plain = job(&pods, "");
    let near = Servers { near: 1, far: 0 };
    assert_eq!(
        (plain.topology.network, plain.topology.placement.as_str(), plain.servers().unwrap().places),
        (Network::Overlay, "same-node", near)
    );
    let far = job(&pods, "placement = \"other-zone\"");
    assert_eq!(
        (far.topology.network, far.topology.placement.as_str(), far.servers().unwrap().places),
        (Network::Overlay, "other-zone", Servers::ONE)
    );
    assert_eq!(job(&pods, "network = \"direct\"").topology.network, Network::Direct);
    assert_eq!(job(&Settings::default(), "").topology.network, Network::Direct);
}
