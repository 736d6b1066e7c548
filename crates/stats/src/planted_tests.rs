use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use statrs::distribution::{ContinuousCDF, Normal};
use wirelab_model::outcome::Blame;
use wirelab_model::units::Share;

use super::*;
use crate::fixture::{plan, record, study};

/// Median response time of the baseline, in nanoseconds.
const BASELINE: f64 = 100_000.0;

const EFFECTS: Planting = Planting::Effects { cell: 0, time: Share(0.1) };

/// Baseline, twin and planted trials of a run with `each` planted trials in a block, which are slower than planted by
/// the factor `bias`.
fn run(blocks: u32, each: u32, noise: f64, bias: f64, seed: u64) -> (Vec<TrialRecord>, Vec<PlantedRecord>) {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || Normal::standard().inverse_cdf(random.random_range(1e-12..1.0));
    let (mut records, mut planted) = (Vec::new(), Vec::new());
    for block in 0..blocks {
        let of_block = (0.04 * normal()).exp() * BASELINE;
        let mut value = |work: f64| of_block * (noise * normal()).exp() + work;
        records.extend([0, 4].map(|cell| record(cell, block, &[("response_median", value(0.0))])));
        for turn in block * each..(block + 1) * each {
            let size = SIZES[turn as usize % SIZES.len()];
            let work_ns = (BASELINE * size.0) as u64;
            let values = [("response_median", value(work_ns as f64) * bias)];
            planted.push(PlantedRecord { size, work_ns, record: record(0, block, &values) });
        }
    }
    (records, planted)
}

fn found(records: &[TrialRecord], extra: &[PlantedRecord], moment: Moment) -> PlantedEffects {
    let analysis = crate::analyse(&study(&json!({})), &plan(), records, &[], moment);
    let seen = planted(Some(&EFFECTS), &plan(), records, extra, (&analysis.comparisons, moment));
    let Some(Planted::Effects(effects)) = seen else { panic!("{seen:?}") };
    effects
}

#[test]
fn effects_in_a_quiet_run_are_found_with_their_size_and_without_bias() {
    let (records, extra) = run(12, 3, 0.005, 1.0, 1);
    let effects = found(&records, &extra, Moment::Ended);
    assert_eq!((effects.trials, effects.failed, effects.effects.len()), (36, 0, 3));
    for effect in &effects.effects {
        assert_eq!((effect.detection, effect.blocks), (Detection::Found, 12), "{effect:?}");
        assert!((effect.truth - 1.0 - effect.size).abs() < 0.01, "{effect:?}");
        assert!((effect.ratio.unwrap() - effect.truth).abs() < 0.01, "{effect:?}");
    }
    let [bias] = &effects.biases[..] else { panic!("{effects:?}") };
    assert!((bias.ratio - 1.0).abs() < 0.005, "{bias:?}");
    assert!((effects.time - 0.6).abs() < 1e-9, "36 of 60 trials");
}

#[test]
fn a_biased_instrument_is_seen() {
    let (records, extra) = run(12, 3, 0.005, 1.05, 2);
    let bias = found(&records, &extra, Moment::Ended).biases.remove(0);
    assert!(bias.interval.unwrap().low > 1.03, "{bias:?}");
}

#[test]
fn few_planted_trials_give_a_bias_and_no_verdict() {
    let (records, extra) = run(10, 1, 0.01, 1.0, 3);
    let effects = found(&records, &extra, Moment::Ended);
    assert!(effects.effects.iter().all(|effect| effect.detection == Detection::TooFewBlocks), "{effects:?}");
    assert_eq!(effects.biases[0].blocks, 10);
    assert!(effects.biases[0].interval.is_some());
}

#[test]
fn before_the_end_of_a_run_nothing_is_judged() {
    let (records, extra) = run(12, 3, 0.005, 1.0, 4);
    let effects = found(&records, &extra, Moment::Underway);
    assert!(effects.effects.iter().all(|one| one.detection == Detection::NotEnded && one.interval.is_none()));
    assert_eq!((effects.biases[0].interval, effects.aa), (None, AaVerdicts::default()));
}

#[test]
fn failed_trials_are_counted_and_left_out() {
    let (records, mut extra) = run(12, 3, 0.005, 1.0, 5);
    extra[0].record.outcome = Outcome::failed(Blame::Server, "it exited early");
    let effects = found(&records, &extra, Moment::Ended);
    assert_eq!((effects.failed, effects.effects[0].blocks, effects.effects[1].blocks), (1, 11, 12));
}

#[test]
fn a_run_without_planted_effects_says_why() {
    let nothing = Planting::Nothing(NotPlanted::SwitchedOff);
    let seen = |planting| planted(planting, &plan(), &[], &[], (&[], Moment::Ended));
    assert_eq!(seen(Some(&nothing)), Some(Planted::Nothing(NotPlanted::SwitchedOff)));
    assert_eq!(seen(None), None);
}

/// The table in `docs/statistics.md`: trials scatter by 5 %, so a single comparison of 10 blocks finds 10 % in most
/// runs and 3 % in few.
#[test]
fn the_power_grows_with_size_and_blocks_and_null_effects_are_not_found() {
    const RUNS: u64 = 200;
    let mut rates = Vec::new();
    for blocks in [10, 30] {
        let mut seen = [0; 3];
        let mut covered = 0;
        for seed in 0..RUNS {
            let (records, extra) = run(blocks, 3, 0.05, 1.0, 1000 + seed);
            let effects = found(&records, &extra, Moment::Ended);
            for (seen, effect) in seen.iter_mut().zip(&effects.effects) {
                *seen += u64::from(effect.detection == Detection::Found);
                assert_ne!(effect.detection, Detection::Reversed, "{effect:?}");
            }
            let interval = effects.biases[0].interval.unwrap();
            covered += u64::from(interval.low <= 1.0 && 1.0 <= interval.high);
        }
        assert!(covered >= RUNS * 92 / 100, "{covered} of {RUNS} intervals of the bias cover 1");
        rates.push(seen.map(|seen| seen as f64 / RUNS as f64));
    }
    println!("{rates:?}");
    assert!(rates[0][0] < 0.35 && rates[0][2] > 0.7 && rates[1][1] > 0.6 && rates[1][2] > 0.98, "{rates:?}");
}
