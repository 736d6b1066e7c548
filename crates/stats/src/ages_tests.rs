use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::json;
use wirelab_model::plan::OwnServers;

use super::*;
use crate::analysis::Moment;
use crate::fixture::{plan, records, study};

/// A request on a connection, which it opens if `opened_ns` is set.
fn sample(connection: u32, start_ns: u64, took_ns: u64, opened_ns: Option<u64>) -> Sample {
    Sample {
        intended_ns: start_ns,
        start_ns,
        connected_ns: opened_ns,
        handshake_ns: None,
        first_byte_ns: Some(start_ns + took_ns),
        last_byte_ns: start_ns + took_ns,
        request: None,
        bytes_out: 0,
        bytes_in: 1,
        status: Some(200),
        connection,
        handshake: None,
        error: None,
    }
}

#[test]
fn only_connections_of_the_window_have_lives_and_their_first_requests_do_not_count() {
    let mut samples = vec![sample(0, 0, 7, None)];
    assert_eq!(lives(&samples), Lives::default(), "as old as the window");
    // Connection 1 is ready at 100; a second request waited for it.
    samples.extend([sample(1, 10, 500, Some(100)), sample(1, 20, 400, None)]);
    assert_eq!(lives(&samples).connections, 0, "no later request");
    // Response times of each fifth of the life; both halves have the same median.
    let took = |number: u64| [7, 5, 6, 7, 5][number as usize / 3];
    samples.extend((0..15).map(|number| sample(1, 100 + number * 10, took(number), None)));
    assert_eq!(lives(&samples).connections, 1);
    assert_eq!(lives(&samples).profile.len(), PARTS);
    samples.pop();
    assert_eq!(lives(&samples), Lives { connections: 1, profile: Vec::new() }, "too few in the last fifth");
}

/// The samples of a trial: two lanes, whose connections live for 10 to 40 requests. The first fifth of a life takes
/// `young` times as long, and the window gets slower by `drift` from its begin to its end.
fn trial(random: &mut ChaCha8Rng, young: f64, drift: f64) -> Vec<Sample> {
    const REQUESTS: u64 = 150;
    let (mut samples, mut connections) = (Vec::new(), 0);
    let level = (random.random_range(-0.2..0.2_f64)).exp();
    for lane in 0..2_u64 {
        let mut number = 0;
        while number < REQUESTS {
            let life = random.random_range(10..=40);
            for age in 0..=life {
                let at = (number + age) * 1_000_000 + lane;
                // A heavy tail without variance.
                let scatter = if random.random_bool(0.02) { random.random::<f64>().powf(-0.9) } else { 1.0 };
                let young = if age * 5 <= life { young } else { 1.0 };
                let place = (number + age) as f64 / REQUESTS as f64;
                let took = 400_000.0 * level * scatter * young * (1.0 + drift * place) * random.random_range(0.7..1.3);
                let opened = (age == 0).then_some(at);
                samples.push(sample(connections, at, took as u64, opened.map(|at| at + 1)));
            }
            number += life + 1;
            connections += 1;
        }
    }
    samples
}

/// The share of simulated cells of 12 trials with a change.
fn found(young: f64, drift: f64) -> f64 {
    const CELLS: u64 = 200;
    let changes = (0..CELLS).filter(|seed| {
        let mut random = ChaCha8Rng::seed_from_u64(*seed);
        let profile = |_| lives(&trial(&mut random, young, drift)).profile.as_slice().try_into().unwrap();
        let profiles: Vec<[u64; PARTS]> = (0..12).map(profile).collect();
        matches!(stationarity::of_cells(&[profiles], 0.05)[..], [Stationarity::Changes { .. }])
    });
    let share = changes.count() as f64 / CELLS as f64;
    println!("young {young}, drift {drift}: {share}");
    share
}

#[test]
fn constant_response_times_rarely_change_with_age() {
    assert!(found(1.0, 0.0) <= 0.05);
}

#[test]
fn slow_young_connections_are_found() {
    assert!(found(1.3, 0.0) >= 0.95);
}

/// A life is a sixth of the window, in which response times grow by 8 %.
#[test]
fn a_change_over_the_window_is_rarely_taken_for_one_with_age() {
    assert!(found(1.0, 0.5) <= 0.05);
}

/// The ages of the cell 1, a blue small one, with this change to its job and its records.
fn ages(job: impl Fn(&mut Cell), record: impl Fn(&mut TrialRecord)) -> Ages {
    let (mut plan, mut all) = (plan(), records(12, [1000.0, 1000.0, 8000.0, 8000.0]));
    plan.cells[1].job.load.connections = ConnectionPolicy::Persistent { connections: 1, streams: 1 };
    job(&mut plan.cells[1]);
    all.iter_mut().filter(|one| one.trial.cell == 1).for_each(record);
    let analysis = crate::analyse(&study(&json!({})), &plan, &all, &[], Moment::Ended);
    analysis.cells[1].ages.unwrap()
}

fn lived(record: &mut TrialRecord) {
    let slow = 1400 + u64::from(record.trial.block);
    record.lives = Some(Lives { connections: 9, profile: vec![slow, 1001, 1002, 1000, 1003] });
}

#[test]
fn what_the_samples_do_not_support_is_not_tested_with_its_reason() {
    let server = ByAge::NotTested { why: NotTested::StartedByTrial };
    let not = |why| Ages { connections: ByAge::NotTested { why }, server };
    assert_eq!(ages(|_| (), |_| ()), not(NotTested::NotRecorded));
    assert_eq!(ages(|_| (), |record| record.lives = Some(Lives::default())), not(NotTested::AsOldAsWindow));
    let per_request = |cell: &mut Cell| cell.job.load.connections = ConnectionPolicy::PerRequest;
    assert_eq!(ages(per_request, |_| ()), not(NotTested::OneRequestEach));
    let histograms = |cell: &mut Cell| cell.job.load.recording = Recording::Histograms;
    assert_eq!(ages(histograms, |_| ()), not(NotTested::Histograms));
    let pages = |cell: &mut Cell| cell.job.load.recording = Recording::Loads;
    assert_eq!(ages(pages, |_| ()), not(NotTested::Pages));
}

#[test]
fn a_slow_first_fifth_of_lives_is_a_change_with_the_age_of_connections() {
    let ByAge::Changes { slowest: 0, ratio, .. } = ages(|_| (), lived).connections else { panic!() };
    assert!((ratio - 1.4).abs() < 0.02, "{ratio}");
    let few = |record: &mut TrialRecord| {
        if record.trial.block < 9 {
            lived(record);
        }
    };
    assert_eq!(ages(|_| (), few).connections, ByAge::TooShort);
}

#[test]
fn a_server_that_outlives_trials_is_tested_by_the_trend_over_the_trials() {
    let site = json!({ "url": "https://example.org/", "host": "example.org", "port": 443, "path": "/" });
    let site = |cell: &mut Cell| cell.job.target = Target::Site(serde_json::from_value(site.clone()).unwrap());
    assert_eq!(ages(site, |_| ()).server, ByAge::Stationary);
    let older = |record: &mut TrialRecord| {
        let value = wirelab_model::metric::Value::Measured(1000.0 + 20.0 * f64::from(record.trial.block));
        record.values.insert("response_median".to_owned(), value);
    };
    let ByAge::Trend { change } = ages(site, older).server else { panic!() };
    assert!((change - 0.2).abs() < 0.02, "{change}");
    let own = |cell: &mut Cell| cell.job.target = Target::Servers(OwnServers::one("a"));
    assert_eq!(ages(own, older).server, ByAge::NotTested { why: NotTested::StartedByTrial });
}
