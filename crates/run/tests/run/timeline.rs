//! Runs with a timeline in the fake lab: the participants at each time, the journal, and the blame.

use crate::support::{Changed, Changes, Started, executed};
use serde_json::json;
use wirelab_lab::fake::Script;
use wirelab_lab::{Fake, Lab, LabError, Launch};
use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::plan::{Cell, Comparison, Job, Plan, Trial};
use wirelab_run::Run;

/// Three seconds: a third server after one second, another client after two, and two more clients at the end.
const STUDY: &str = r#"
name = "coming-and-going"
title = "Coming and going"
question = "Who gets what?"
lab = "fake"
observers = []
[workload]
protocol = "grpcc"
network = "overlay"
placement = "lan"
servers = "2 far"
duration = "3 s"
pause = "10 ms"
[factors]
address = ["service", "headless"]
[timeline]
actions = [
    { name = "T2", at = "33 %", servers = "3 far" },
    { name = "T3", at = "66 %", restart = "clients" },
    { name = "T4", at = "90 %", clients = 3 },
]
[timeline.windows]
from-T2 = { from = "T2" }
[compare]
factor = "address"
baseline = "service"
[blocks]
min = 1
max = 1
"#;

fn script() -> Script {
    Script::plausible().with_noise(wirelab_lab::fake::Noise::NONE)
}

/// The first trial of a run.
fn trial(lab: &mut dyn Lab) -> TrialRecord {
    let parent = tempfile::tempdir().unwrap();
    let run = executed(parent.path(), STUDY, &["builtin"], lab);
    let read = Run::open(run.folder()).unwrap();
    read.trials()[0].clone()
}

#[test]
fn a_timeline_is_played_in_one_trial_and_journalled() {
    let parent = tempfile::tempdir().unwrap();
    let run = executed(parent.path(), STUDY, &["builtin"], &mut Fake::new(script()));
    for record in run.trials() {
        assert_eq!(record.outcome, Outcome::Ok);
        let played = record.timeline.as_ref().unwrap();
        let due: Vec<_> = played.actions.iter().map(|action| (action.name.as_str(), action.due_ns)).collect();
        assert_eq!(due, [("T2", 990_000_000), ("T3", 1_980_000_000), ("T4", 2_700_000_000)]);
        assert!(played.actions.iter().all(|action| action.began_ns >= action.due_ns));
        let from: Vec<_> = played.servers.iter().map(|server| server.from_ns).collect();
        assert_eq!(from, [Some(0), Some(0), Some(played.actions[0].began_ns)]);
        // The first client, its replacement, and two more.
        assert_eq!(played.clients.len(), 4);
        let samples = run.samples(record).unwrap();
        let of = |number: usize| {
            let (from, next) = (&played.clients[number], played.clients.get(number + 1));
            let end = next.map_or(u32::MAX, |next| next.first_connection);
            let own = samples.iter().filter(|sample| (from.first_connection..end).contains(&sample.connection));
            own.map(|sample| sample.start_ns).fold((u64::MAX, 0), |(low, high), at| (low.min(at), high.max(at)))
        };
        // Each client sends as long as it exists, by the clock of the window.
        assert!(of(0).0 < 20_000_000 && of(0).1 < 1_980_000_000 && of(0).1 > 1_950_000_000, "{:?}", of(0));
        for number in 1..4 {
            let (first, last) = of(number);
            assert!(first >= played.clients[number].from_ns && last > 2_950_000_000, "{number}: {first} to {last}");
        }
        assert_eq!(samples.len() as f64, record.values["requests"].number().unwrap());
        assert_eq!(played.intervals.iter().map(|one| one.requests).sum::<u64>(), samples.len() as u64);
        // The fake servers answer 10, 20 and 30 requests between two counts.
        assert_eq!(record.values["server_largest@from-T2"].number(), Some(0.5));
        assert_eq!(record.values["server_newest@from-T2"].number(), Some(0.5));
        // The servers were counted when the window ended, and again when the clients ended. Clients of T4 started late.
        let after = played.answered.iter().filter(|answered| answered.at_ns >= 3_000_000_000).count();
        assert!(after >= 2, "{:?}", played.answered);
    }
    // The records survive writing and reading.
    assert_eq!(Run::open(run.folder()).unwrap().trials(), run.trials());
}

/// Records the specs of its servers and cannot change its network.
#[derive(Default)]
struct Stiff {
    started: Started,
}

impl Changes for Stiff {
    fn reach(&mut self, servers: &[(u32, u16)]) -> Result<(), LabError> {
        Err(LabError::unsupported(format!("{} servers are too many", servers.len())))
    }

    fn starts(&mut self, launch: &Launch<'_>) {
        self.started.note(launch);
    }
}

#[test]
fn an_action_that_fails_is_the_labs_fault_and_what_was_done_is_kept() {
    let mut lab = Changed { fake: Fake::new(script()), changes: Stiff::default() };
    let record = trial(&mut lab);
    let Outcome::Failed { blame: Blame::Lab, reason } = &record.outcome else { panic!("{:?}", record.outcome) };
    assert_eq!(reason.to_string(), "the action `T2` failed: 3 servers are too many");
    let played = record.timeline.unwrap();
    assert_eq!(played.actions.iter().map(|action| action.name.as_str()).collect::<Vec<_>>(), ["T2"]);
    assert_eq!((played.clients.len(), played.servers[2].from_ns), (1, None));
    let servers = &lab.changes.started.servers;
    assert!(servers.iter().all(|spec| spec.counts) && servers.len() >= 3, "{servers:?}");
}

/// A network that changes only after this number of questions.
struct Slow {
    takes: u32,
    asked: u32,
}

impl Changes for Slow {
    fn reach(&mut self, _: &[(u32, u16)]) -> Result<(), LabError> {
        self.asked = 0;
        Ok(())
    }

    fn is_reached(&mut self) -> Result<bool, LabError> {
        self.asked += 1;
        Ok(self.asked > self.takes)
    }
}

fn slow(takes: u32) -> Vec<TrialRecord> {
    let parent = tempfile::tempdir().unwrap();
    let mut lab = Changed { fake: Fake::new(script()), changes: Slow { takes, asked: 0 } };
    executed(parent.path(), STUDY, &["builtin"], &mut lab).trials().to_vec()
}

#[test]
fn requests_go_on_while_the_network_changes_and_what_that_took_is_journalled() {
    for record in slow(5) {
        assert_eq!(record.outcome, Outcome::Ok);
        let played = record.timeline.unwrap();
        let [change, restart, _] = &played.actions[..] else { panic!("{played:?}") };
        // The lab is asked at least as often as servers are counted, every 100 ms.
        assert!(change.took_ns > 100_000_000 && change.began_ns + change.took_ns < restart.began_ns, "{change:?}");
        assert!(restart.took_ns < change.took_ns, "{restart:?}");
        let meanwhile = change.began_ns..change.began_ns + change.took_ns;
        let counts = played.answered.iter().filter(|answered| meanwhile.contains(&answered.at_ns)).count();
        assert!(counts >= 2, "{counts}");
        assert_eq!(played.servers[2].from_ns, Some(change.began_ns));
    }
}

#[test]
fn clients_start_and_windows_end_only_after_the_new_servers_are_found() {
    for record in slow(u32::MAX) {
        let Outcome::Failed { blame: Blame::Lab, reason } = &record.outcome else { panic!("{:?}", record.outcome) };
        assert!(reason.to_string().contains("did not yet find the servers of the action `T2`"), "{reason}");
        let actions = record.timeline.unwrap().actions.len();
        // With a name the client gets a list of servers; behind a service it finds the current servers.
        let when = if actions == 2 { "when `T3` was due" } else { "when the window ended" };
        assert!(reason.to_string().contains(when) && matches!(actions, 2 | 3), "{actions}: {reason}");
    }
}

#[test]
fn a_trial_without_a_timeline_asks_no_server_to_count() {
    let cell = |levels: &str| Cell {
        levels: [("protocol".to_owned(), levels.to_owned())].into_iter().collect(),
        twin_of: None,
        job: Job::plain(wirelab_model::protocol::Protocol::H1),
    };
    let plan = Plan {
        cells: vec![cell("a"), cell("b")],
        comparisons: vec![Comparison { cell: 1, baseline: 0, aa: false }],
        seed: 1,
        min_blocks: 1,
        max_blocks: 1,
        budget: None,
        precision: 0.05,
    };
    let spec = wirelab_run::spec::server;
    let parent = tempfile::tempdir().unwrap();
    let files = wirelab_run::spec::Files {
        pki: wirelab_run::pki::Pki::create(parent.path(), &[std::net::Ipv4Addr::LOCALHOST.into()], []).unwrap(),
        documents: wirelab_run::documents::Documents::create(parent.path().join("documents"), &plan).unwrap(),
        results: parent.path().join("results"),
        key_log: None,
        folder: parent.path().to_owned(),
    };
    let trial = Trial { number: 0, block: 0, position: 0, cell: 0, seed: 1 };
    let job = &plan.cells[0].job;
    let server = spec(&trial, (job, job.servers().unwrap()), 0, std::net::Ipv4Addr::LOCALHOST.into(), &files);
    // Endpoints that do not know the field see no difference.
    assert_eq!(json!(server).get("counts"), None);
}
