//! Every job that a study can ask for is read from a file as it was written.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use wirelab_model::plan::Job;
use wirelab_plan::{builtin, job, parse, plan, resolve};

/// Settings of all kinds of jobs; many combinations are refused.
const SETTINGS: [&str; 22] = [
    "site = 'https://example.org/'",
    "page = 'today'\nclient = 'firefox'\nhosts = 3",
    "page = './saved.har'\nclient = 'chromium'\ndelay = '20 ms'",
    "network = 'overlay'\nplacement = 'lan'\nservers = 'near + 2 far'",
    "address = 'headless'\nresolve_again = true",
    "address = 'node-port'",
    "mesh = 'proxy'",
    "control_plane = 'plane'",
    "server_lacks = 'h3'",
    "server_nodes = 'disk=ssd'",
    "client_nodes = 'disk=ssd'",
    "placement = '3g'\nloss = '1 %'",
    "exchange = 'delay'\ndelay = '3 ms'",
    "exchange = 'heron'",
    "payload = '9 KiB'",
    "clients = 2\nworkers = 4",
    "rate = '50/s'\nduration = '2 s'",
    "connections = 'per-request'\nresumption = 'zero_rtt'",
    "max_connection_age = '2 s'",
    "server_threads = 3\nclient_threads = 2",
    "early_hints = false\npriorities = 'obeyed'",
    "more_observers = ['cpu']",
];

const PROTOCOLS: [&str; 5] = ["h1", "h2c", "h3", "grpcc", "udp"];

/// The job after a way through a file.
fn through_a_file(job: &Job) -> Job {
    serde_json::from_str(&serde_json::to_string(job).unwrap()).unwrap()
}

/// The same cases in every run.
fn fixed(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(fixed(400))]

    #[test]
    fn settings_that_make_a_job_make_one_that_a_file_can_hold(
        protocol in prop::sample::select(&PROTOCOLS[..]),
        chosen in prop::sample::subsequence(&SETTINGS[..], 0..4),
    ) {
        let text = format!("protocol = '{protocol}'\n{}", chosen.join("\n"));
        // A key that is set twice is no TOML.
        let Ok(settings) = toml::from_str(&text) else { return Ok(()) };
        if let Ok(job) = job(&settings) {
            prop_assert_eq!(through_a_file(&job), job);
        }
    }
}

#[test]
fn each_kind_of_setting_makes_a_job_with_some_protocol() {
    for set in SETTINGS {
        let overlay = "network = 'overlay'\nplacement = 'lan'\n";
        let is_possible = PROTOCOLS.iter().any(|protocol| {
            ["", overlay, "page = 'small-10'\nclient = 'firefox'\n"].iter().any(|base| {
                toml::from_str(&format!("protocol = '{protocol}'\n{base}{set}")).is_ok_and(|set| job(&set).is_ok())
            })
        });
        assert!(is_possible, "{set}");
    }
}

#[test]
fn the_jobs_of_all_studies_are_read_as_they_were_written() {
    for study in builtin() {
        let presets = parse(study.text, study.name).unwrap().presets;
        for preset in presets.keys().map(|name| Some(name.as_str())).chain([None]) {
            let (plan, _) = plan(&resolve(parse(study.text, study.name).unwrap(), preset, &[]).unwrap()).unwrap();
            assert!(plan.cells.iter().all(|cell| through_a_file(&cell.job) == cell.job), "{} {preset:?}", study.name);
        }
    }
}
