use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use statrs::distribution::{ContinuousCDF, Normal};
use wirelab_model::missing::Missing;
use wirelab_model::path::{Delivery, Measured, PathDirection, PathReading, RoundTrips};
use wirelab_model::protocol::Protocol;

use super::*;
use crate::analysis::{ContestOutcome, Moment};
use crate::compare::{MIN_BLOCKS, PairedEffect, Rule};
use crate::fixture::{record, study};

/// The plan of the fixture, in which blue has another protocol than red.
fn plan() -> Plan {
    let mut plan = crate::fixture::plan();
    for cell in [1, 3] {
        plan.cells[cell].job.protocol = Protocol::Tcp;
    }
    plan
}

fn references() -> References {
    let cells = [0, 1, 2, 3, 0, 2].map(CellReference::Shared).into();
    References { time: wirelab_model::units::Share(0.2), cells }
}

/// Costs of client and server of red and blue, in microseconds.
struct Costs {
    client: [f64; 2],
    server: [f64; 2],
}

/// A run of 12 blocks with a reference of each small cell in `referred` of them. Trials vary by 3 %, blocks by 5 %.
fn run(costs: &Costs, referred: u32, seed: u64) -> [Vec<TrialRecord>; 2] {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut normal = || Normal::standard().inverse_cdf(random.random_range(1e-12..1.0));
    let (mut records, mut references) = (Vec::new(), Vec::new());
    for block in 0..12 {
        let of_block = (0.05 * normal()).exp() * 1000.0;
        let mut trial = |cell, time: f64| {
            let time = time * of_block * (0.03 * normal()).exp();
            record(cell, block, &[("response_median", time), ("request_rate", 1e9 / time)])
        };
        let client = costs.client;
        let both = [0, 1].map(|colour| costs.client[colour] + costs.server[colour]);
        records.extend([0, 1, 2, 3, 4, 5].map(|cell| trial(cell, both[cell % 2])));
        for cell in [0, 1].into_iter().filter(|cell| (block + *cell as u32) * referred % 12 < referred) {
            references.push(trial(cell, client[cell]));
        }
    }
    [records, references]
}

const METRICS: &str =
    r#"{ "compare": { "factor": "colour", "baseline": "red", "metrics": ["response_median", "request_rate"] } }"#;

fn analyse(plan: &Plan, records: &[TrialRecord], referred: &[TrialRecord]) -> Analysis {
    let study = study(&serde_json::from_str(METRICS).unwrap());
    let mut analysis = crate::analyse(&study, plan, records, &crate::METRICS.iter().collect::<Vec<_>>(), Moment::Ended);
    attribute(&mut analysis, plan, Some(&references()), [records, referred], &[]);
    analysis
}

/// Verdicts on blue small against red small in both metrics.
fn verdicts(analysis: &Analysis) -> Vec<Verdict> {
    let of_pair = analysis.comparisons.iter().filter(|compared| (compared.cell, compared.baseline) == (1, 0));
    of_pair.map(|compared| compared.verdict).collect()
}

const CLIENT_BOUND: Verdict = Verdict::CannotTell { why: CannotTell::ClientBound };

/// The share of 200 runs with a verdict of a difference in the response time.
fn rate_of_verdicts(costs: &Costs, referred: u32) -> f64 {
    let (plan, all, mut bootstrap) = (plan(), references(), Bootstrap::new(1));
    let mut differs = |seed: &u64| {
        let [records, referred] = run(costs, referred, *seed);
        let source = Source { plan: &plan, references: &all, records: &records, referred: &referred, links: &[] };
        let [blue, red] = [1, 0].map(|cell| source.of_cell(cell, METRIC).into_values().collect::<Vec<_>>());
        let effect = PairedEffect::of(&blue, &red, &mut bootstrap);
        let verdict = effect.verdict(effect.p, &Rule::plain(MIN_BLOCKS, 0.05));
        let is_difference = matches!(verdict, Verdict::Less | Verdict::More);
        is_difference && !source.explains(verdict, [1, 0], METRIC, &mut bootstrap)
    };
    (0..200_u64).filter(|seed| differs(seed)).count() as f64 / 200.0
}

#[test]
fn a_difference_of_the_client_alone_gives_no_verdict_about_the_server() {
    let costs = Costs { client: [60.0, 80.0], server: [40.0, 40.0] };
    for referred in [5, 12] {
        let rate = rate_of_verdicts(&costs, referred);
        assert!(rate <= 0.05, "{rate} of runs with {referred} references");
    }
    let [records, references] = run(&costs, 12, 1);
    let analysis = analyse(&plan(), &records, &references);
    assert_eq!(verdicts(&analysis), [CLIENT_BOUND; 2]);
    let contest = &analysis.contests[0];
    assert_eq!((contest.outcome, contest.rivals[0].verdict), (ContestOutcome::Undecided, CLIENT_BOUND));
    // Without references the same data have a verdict.
    assert_eq!(verdicts(&analyse(&plan(), &records, &[])), [Verdict::More, Verdict::Less]);
}

#[test]
fn a_difference_of_the_server_survives() {
    for (costs, referred, least) in [
        (Costs { client: [60.0, 60.0], server: [40.0, 60.0] }, 5, 0.9),
        (Costs { client: [60.0, 60.0], server: [40.0, 60.0] }, 12, 0.97),
        // The client's difference adds to the server's.
        (Costs { client: [60.0, 70.0], server: [40.0, 60.0] }, 12, 0.97),
        // A client that takes little.
        (Costs { client: [10.0, 15.0], server: [90.0, 110.0] }, 5, 0.97),
    ] {
        let rate = rate_of_verdicts(&costs, referred);
        assert!(rate >= least, "{rate}: {:?}, {:?}, {referred}", costs.client, costs.server);
    }
}

#[test]
fn a_faster_server_behind_a_slower_client_is_not_called_slower() {
    // Blue is slower as a whole, because of the client.
    let costs = Costs { client: [60.0, 90.0], server: [40.0, 30.0] };
    let [records, references] = run(&costs, 12, 3);
    assert_eq!(verdicts(&analyse(&plan(), &records, &references)), [CLIENT_BOUND; 2]);
}

#[test]
fn shares_have_intervals_that_cover_the_truth() {
    let costs = Costs { client: [60.0, 80.0], server: [40.0, 20.0] };
    for referred in [5, 12] {
        let (mut covered, mut bootstrap) = ([0; 2], Bootstrap::new(1));
        for seed in 0..100 {
            let [records, references] = run(&costs, referred, seed);
            let (plan, all) = (plan(), self::references());
            let source = Source { plan: &plan, references: &all, records: &records, referred: &references, links: &[] };
            let shares = source.shares(1, &mut bootstrap);
            for (covered, (share, truth)) in covered.iter_mut().zip([(shares.client, 0.8), (shares.server, 0.2)]) {
                let Share::Measured { interval: Some(interval), .. } = share else { panic!("{share:?}") };
                *covered += u32::from(interval.low <= truth && truth <= interval.high);
            }
        }
        assert!(covered.iter().all(|covered| *covered >= 90), "{covered:?} of 100 with {referred} references");
    }
}

#[test]
fn the_rule_concerns_servers_and_protocols_only() {
    let costs = Costs { client: [60.0, 80.0], server: [40.0, 40.0] };
    let [records, references] = run(&costs, 12, 1);
    let verdict = |change: &dyn Fn(&mut Plan)| {
        let mut plan = plan();
        change(&mut plan);
        verdicts(&analyse(&plan, &records, &references))[0]
    };
    assert_eq!(verdict(&|_| {}), CLIENT_BOUND);
    // The client is the subject, or the load is.
    assert_eq!(verdict(&|plan| plan.cells[1].job.client = "b".to_owned()), Verdict::More);
    assert_eq!(verdict(&|plan| plan.cells[1].job.protocol = Protocol::Udp), Verdict::More);
    // Over a link with a delay, the reference contains the protocol's round trips.
    let link = wirelab_model::link::Link {
        round_trip: wirelab_model::units::Span(1_000_000),
        ..wirelab_model::link::Link::wire()
    };
    assert_eq!(verdict(&|plan| plan.cells[1].job.topology.link = Some(link)), Verdict::More);
    let wire = wirelab_model::link::Link::wire();
    assert_eq!(verdict(&|plan| plan.cells[1].job.topology.link = Some(wire)), CLIENT_BOUND);
}

/// A measurement of the path between the hosts of the fixture's placement.
fn path(reading: Measured<PathReading>) -> [LinkCheck; 1] {
    let [placement, client, server] = [&plan().cells[0].job.topology.placement, "a", "b"].map(str::to_owned);
    let paths = vec![PathRecord { placement, client, server, reading }];
    [LinkCheck { block: 0, at: String::new(), links: Vec::new(), paths }]
}

fn round_trip(ns: u64) -> Measured<PathReading> {
    let direction = PathDirection {
        delivery: Delivery::default(),
        mtu: Measured::Is(1500),
        marks: Measured::Is(Vec::new()),
        hops: Measured::Is(Vec::new()),
        load: Measured::Missing(Missing::LoadNotAllowed),
    };
    let round_trip = RoundTrips::of(vec![ns]).unwrap();
    Measured::Is(PathReading { round_trip, up: direction.clone(), down: direction })
}

#[test]
fn round_trips_between_hosts_are_not_the_client_s_cost() {
    let [records, references] = run(&Costs { client: [60.0, 80.0], server: [40.0, 40.0] }, 12, 1);
    let seen = |reading: Measured<PathReading>| {
        let mut analysis = analyse(&plan(), &records, &[]);
        attribute(&mut analysis, &plan(), Some(&self::references()), [&records, &references], &path(reading));
        let verdict = verdicts(&analysis)[0];
        (analysis.shares.swap_remove(0), verdict)
    };
    // 1 % of the response time is like a wire; with 50 % the references measure the path.
    let (near, verdict) = seen(round_trip(1_000));
    assert!(matches!(near.client, Share::Measured { .. }) && verdict == CLIENT_BOUND, "{near:?}, {verdict:?}");
    let (far, verdict) = seen(round_trip(50_000));
    assert_eq!((&far.client, verdict), (&Share::Missing(WhyNot::RoundTrips), Verdict::More));
    assert!(matches!(far.network, Share::Measured { share, .. } if (0.4..0.6).contains(&share)), "{far:?}");
    // An unknown round trip may be long, or short: the share and the verdict are both withheld.
    let not_measured = (Share::Missing(WhyNot::RoundTrips), Share::Missing(WhyNot::LinkNotMeasured), CLIENT_BOUND);
    let (unknown, verdict) = seen(Measured::Missing(Missing::NoDatagramCameBack));
    assert_eq!((unknown.client, unknown.network, verdict), not_measured);
    // The lab of a cluster measures no path.
    let mut apart = plan();
    apart.cells.iter_mut().for_each(|cell| cell.job.topology.placement = "other-node".to_owned());
    let mut analysis = analyse(&apart, &records, &references);
    let shares = analysis.shares.swap_remove(0);
    assert_eq!((shares.client, shares.network, verdicts(&analysis)[0]), not_measured);
}

#[test]
fn what_is_not_measured_has_a_reason_and_is_not_0() {
    let [records, references] = run(&Costs { client: [60.0, 80.0], server: [40.0, 40.0] }, 12, 1);
    let of = |references: &References, referred: &[TrialRecord]| {
        let plan = plan();
        let source = Source { plan: &plan, references, records: &records, referred, links: &[] };
        let shares = source.shares(0, &mut Bootstrap::new(1));
        assert_eq!(shares.network, Share::Missing(WhyNot::NoLink));
        assert_eq!(shares.client == shares.server, matches!(shares.client, Share::Missing(_)));
        shares.client
    };
    let few: Vec<_> = references.iter().filter(|record| record.trial.block < 4).cloned().collect();
    assert_eq!(of(&self::references(), &few), Share::Missing(WhyNot::TooFewTrials { trials: 4, needed: 5 }));
    let mut without = self::references();
    without.cells[0] = CellReference::Nothing(NotReferenced::SwitchedOff);
    assert_eq!(of(&without, &references), Share::Missing(WhyNot::NotReferenced(NotReferenced::SwitchedOff)));
    assert!(matches!(of(&self::references(), &references), Share::Measured { interval: Some(_), .. }));
    let mut analysis = crate::analyse(&study(&json!({})), &plan(), &records, &[], Moment::Ended);
    attribute(&mut analysis, &plan(), None, [&records, &references], &[]);
    assert_eq!(analysis.shares, []);
}
