use std::path::Path;
use std::time::Instant;

use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Event};
use wirelab_model::histogram::Histograms;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::plan::{Job, Load, Trial};
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::{Handshake, Sample};
use wirelab_model::spec::{Arrivals, ClientSpec, Extent, Recording, Request, Schedule};

use super::{Case, Fake, Misbehaviour, Moment, Noise, Prepared, Script};
use crate::{EventError, ExitStatus, Launch, PreparedLab, Process, Role};

/// A job of this protocol with this load.
fn with(protocol: Protocol, load: Load) -> Job {
    Job { load, ..Job::plain(protocol) }
}

fn job() -> Job {
    with(Protocol::H2, Load { extent: Extent::Requests(200), ..Load::plain() })
}

fn spec(job: &Job, seed: u64, results: &Path) -> ClientSpec {
    ClientSpec {
        server_name: "wirelab.test".to_owned(),
        request: Request::get("/1024.bin"),
        connections: job.load.connections,
        schedule: job.load.schedule,
        extent: job.load.extent,
        resumption: job.load.resumption,
        timeouts: job.load.timeouts,
        seed,
        recording: job.load.recording,
        results: results.to_owned(),
        ..ClientSpec::plain(job.protocol, 1)
    }
}

/// The first trial of a run, with this seed.
const fn first(seed: u64) -> Trial {
    Trial { number: 0, block: 0, position: 0, cell: 0, seed }
}

fn start(lab: &mut Fake, role: Role, job: &Job, trial: &Trial, folder: &Path) -> Box<dyn Process> {
    let path = folder.join("spec.json");
    std::fs::write(&path, serde_json::to_string(&spec(job, trial.seed, &folder.join("results"))).unwrap()).unwrap();
    let endpoint = Endpoint {
        name: "builtin".to_owned(),
        command: vec!["never started".to_owned()],
        environment: Default::default(),
        folder: None,
        installation: None,
    };
    let launch = Launch { role, number: 0, endpoint: &endpoint, spec: &path, log: &folder.join("log") };
    Prepared(&mut lab.script).open(trial, job).unwrap().start(&launch).unwrap()
}

/// Runs a client through the contract; returns the results file and the window.
fn play(lab: &mut Fake, job: &Job, trial: &Trial) -> (String, u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut client = start(lab, Role::Client, job, trial, folder.path());
    let now = Instant::now();
    assert!(matches!(client.next_event(now), Ok(Event::Ready { port: None, .. })));
    assert_eq!(client.next_event(now), Err(EventError::Deadline), "it waits for `go`");
    client.send(Command::Go).unwrap();
    assert_eq!(client.next_event(now), Ok(Event::Warm { until_steady: None }));
    client.send(Command::Go).unwrap();
    let Ok(Event::End { window_ns }) = client.next_event(now) else { panic!("no end") };
    client.send(Command::Finish).unwrap();
    assert!(matches!(client.next_event(now), Ok(Event::Done { requests: Some(_), .. })));
    assert_eq!(client.end(now).status, ExitStatus::Code(0));
    (std::fs::read_to_string(folder.path().join("results")).unwrap(), window_ns)
}

fn samples(lab: &mut Fake, job: &Job, trial: &Trial) -> Vec<Sample> {
    let samples: Vec<Sample> =
        play(lab, job, trial).0.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    samples.iter().for_each(|sample| sample.check().unwrap());
    samples
}

fn median(samples: &[Sample]) -> f64 {
    let mut times: Vec<_> = samples.iter().map(Sample::service_ns).collect();
    times.sort_unstable();
    times[times.len() / 2] as f64
}

#[test]
fn a_client_keeps_the_contract_and_its_samples_are_a_function_of_the_seed() {
    let run = |seed| play(&mut Fake::new(Script::plausible()), &job(), &first(seed));
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8));
    let samples = samples(&mut Fake::new(Script::plausible()), &job(), &first(7));
    assert_eq!(samples.len(), 200);
    assert!(samples.iter().all(|sample| sample.handshake == Some(Handshake::Full) && sample.status == Some(200)));
}

#[test]
fn without_noise_every_request_takes_what_the_script_says() {
    let script = Script::new(|job, _| if job.protocol == Protocol::H2 { 1e6 } else { 2e6 }).with_noise(Noise::NONE);
    let mut lab = Fake::new(script);
    assert!(samples(&mut lab, &job(), &first(1)).iter().all(|sample| sample.response_ns() == 1_000_000));
    let other = Job { protocol: Protocol::H3, ..job() };
    assert!(samples(&mut lab, &other, &first(1)).iter().all(|sample| sample.response_ns() == 2_000_000));
}

#[test]
fn trials_of_a_block_share_its_effect_and_others_do_not() {
    let noise = Noise { block: 0.2, ..Noise::NONE };
    let mut lab = Fake::new(Script::new(|_, _| 1e6).with_noise(noise));
    let mut of = |block, number| median(&samples(&mut lab, &job(), &Trial { number, block, ..first(number.into()) }));
    assert_eq!(of(0, 0), of(0, 1));
    assert_ne!(of(0, 2), of(1, 3));
}

#[test]
fn trials_of_a_block_share_its_seed_but_scatter_independently() {
    // Test each kind of noise alone, so that none hides behind another.
    let kinds = [
        Noise { trial: 0.1, ..Noise::NONE },
        Noise { request: 0.1, ..Noise::NONE },
        Noise { spikes: 0.1, spike_factor: 5.0, ..Noise::NONE },
    ];
    for noise in kinds {
        let mut lab = Fake::new(Script::new(|_, _| 1e6).with_noise(noise));
        let mut times = |number, seed| -> Vec<u64> {
            samples(&mut lab, &job(), &Trial { number, ..first(seed) }).iter().map(Sample::service_ns).collect()
        };
        assert_eq!(times(3, 7), times(3, 7), "{noise:?}");
        assert_ne!(times(3, 7), times(4, 7), "the same noise in two trials of one seed: {noise:?}");
        assert_ne!(times(3, 7), times(3, 8), "{noise:?}");
    }
}

#[test]
fn scatter_between_trials_of_one_seed_has_the_set_size_and_no_correlation() {
    let mut lab = Fake::new(Script::new(|_, _| 1e6).with_noise(Noise { trial: 0.05, ..Noise::NONE }));
    let job = Job::plain(Protocol::H2);
    let logs: Vec<f64> =
        (0..400).map(|number| (median(&samples(&mut lab, &job, &Trial { number, ..first(7) })) / 1e6).ln()).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let centred: Vec<_> = logs.iter().map(|log| log - mean(&logs)).collect();
    let variance = mean(&centred.iter().map(|x| x * x).collect::<Vec<_>>());
    let lag = mean(&centred.windows(2).map(|pair| pair[0] * pair[1]).collect::<Vec<_>>()) / variance;
    // Three standard errors of 400 draws.
    assert!((0.0447..0.0553).contains(&variance.sqrt()), "standard deviation {}", variance.sqrt());
    assert!(mean(&logs).abs() < 0.0075 && lag.abs() < 0.15, "mean {}, correlation {lag}", mean(&logs));
}

#[test]
fn a_planted_difference_affects_only_its_cell() {
    let planted = |case: &Case<'_>| if case.cell == 1 { 1.1 } else { 1.0 };
    let mut lab = Fake::new(Script::new(|_, _| 1e6).with_noise(Noise::NONE).with_planted(planted));
    let mut of = |cell| median(&samples(&mut lab, &job(), &Trial { cell, ..first(1) }));
    assert_eq!([0, 1, 2].map(&mut of), [1_000_000.0, 1_100_000.0, 1_000_000.0]);
}

#[test]
fn drift_grows_with_the_number_of_the_trial() {
    let noise = Noise { drift: 0.1, ..Noise::NONE };
    let mut lab = Fake::new(Script::new(|_, _| 1e6).with_noise(noise));
    let medians: Vec<_> =
        (0..3).map(|number| median(&samples(&mut lab, &job(), &Trial { number, ..first(1) }))).collect();
    assert_eq!(medians, [1_000_000.0, 1_100_000.0, 1_200_000.0]);
}

#[test]
fn spikes_and_failed_requests_have_their_shares() {
    let mut script = Script::new(|_, _| 1e6).with_noise(Noise { spikes: 0.1, spike_factor: 5.0, ..Noise::NONE });
    script.failed_requests = 0.2;
    let job = with(Protocol::Udp, Load { extent: Extent::Requests(10_000), ..Load::plain() });
    let samples = samples(&mut Fake::new(script), &job, &first(3));
    let share = |count: usize| count as f64 / samples.len() as f64;
    let spikes = share(samples.iter().filter(|sample| sample.is_ok() && sample.service_ns() == 5_000_000).count());
    let lost = share(samples.iter().filter(|sample| sample.error == Some(ErrorKind::Lost)).count());
    assert!((0.06..0.10).contains(&spikes) && (0.18..0.22).contains(&lost), "{spikes} {lost}");
}

#[test]
fn an_open_loop_keeps_its_rate_and_a_duration_ends_it() {
    let open = Schedule::Open { rate_per_s: 1000.0, arrivals: Arrivals::Poisson };
    let extent = Extent::DurationNs(10_000_000_000);
    let job = with(Protocol::H2, Load { schedule: open, extent, ..Load::plain() });
    let samples = samples(&mut Fake::new(Script::plausible()), &job, &first(5));
    assert!((9_600..10_400).contains(&samples.len()), "{}", samples.len());
    assert!(samples.iter().all(|sample| sample.intended_ns < 10_000_000_000));
}

#[test]
fn histograms_count_what_the_samples_would_have() {
    let job = with(Protocol::H2, Load { recording: Recording::Histograms, ..job().load });
    let histograms: Histograms =
        serde_json::from_str(&play(&mut Fake::new(Script::plausible()), &job, &first(1)).0).unwrap();
    assert_eq!((histograms.requests, histograms.response.count, histograms.failure.count), (200, 200, 0));
    assert!(histograms.response.min_ns <= histograms.response.max_ns && histograms.failure.v2.is_empty());
}

#[test]
fn every_misbehaviour_happens_at_its_moment() {
    let folder = tempfile::tempdir().unwrap();
    let now = Instant::now();
    let nonsense = || Misbehaviour::Nonsense("hello".to_owned());
    for (moment, before) in [(Moment::Start, 0), (Moment::Check, 1), (Moment::Window, 2), (Moment::Finish, 3)] {
        for (misbehaviour, silence) in [
            (Misbehaviour::Exits(3), EventError::Ended(exit(ExitStatus::Code(3)))),
            (Misbehaviour::Dies(11), EventError::Ended(exit(ExitStatus::Signal(11)))),
            (Misbehaviour::Hangs, EventError::Deadline),
            (nonsense(), EventError::Nonsense("hello".to_owned())),
        ] {
            let script = Script::plausible()
                .with_trouble(move |case| (case.role == Role::Client).then(|| (moment, misbehaviour.clone())));
            let mut client = start(&mut Fake::new(script), Role::Client, &job(), &first(1), folder.path());
            for (_, command) in (0..before).zip([Command::Go, Command::Go, Command::Finish]) {
                client.next_event(now).unwrap();
                client.send(command).unwrap();
            }
            assert_eq!(client.next_event(now), Err(silence), "{moment:?}");
        }
    }
}

#[test]
fn unsupported_is_reported_with_status_127() {
    let folder = tempfile::tempdir().unwrap();
    let script = Script::plausible()
        .with_trouble(|case| Some((Moment::Start, Misbehaviour::Unsupported(format!("no {}", case.job.protocol)))));
    let mut server = start(&mut Fake::new(script), Role::Server, &job(), &first(1), folder.path());
    let now = Instant::now();
    assert_eq!(server.next_event(now), Ok(Event::Unsupported { message: "no h2".to_owned() }));
    assert_eq!(server.next_event(now), Err(EventError::Ended(exit(ExitStatus::Code(127)))));
}

#[test]
fn a_server_reports_a_port_and_stops_on_command_or_dies_by_script() {
    let folder = tempfile::tempdir().unwrap();
    let now = Instant::now();
    let mut server = start(&mut Fake::new(Script::plausible()), Role::Server, &job(), &first(1), folder.path());
    assert!(matches!(server.next_event(now), Ok(Event::Ready { port: Some(_), .. })));
    server.send(Command::Stop).unwrap();
    assert!(matches!(server.next_event(now), Ok(Event::Done { .. })));
    let script = Script::plausible().with_trouble(|_| Some((Moment::Window, Misbehaviour::Dies(9))));
    let mut server = start(&mut Fake::new(script), Role::Server, &job(), &first(1), folder.path());
    assert!(matches!(server.next_event(now), Ok(Event::Ready { .. })));
    assert_eq!(server.next_event(now), Err(EventError::Ended(exit(ExitStatus::Signal(9)))));
}

const fn exit(status: ExitStatus) -> crate::Exit {
    crate::Exit { status, usage: None, last_words: String::new() }
}
