//! The loopback lab, with this program as its guard.

use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_lab::{ExitStatus, Lab, Launch, Loopback, Preparation, Role};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Event};
use wirelab_model::plan::{Job, OwnServers, Target, Topology, Trial};
use wirelab_model::protocol::Protocol;
use wirelab_model::warning::Warning;
use wirelab_testkit::physics::Test;
use wirelab_testkit::test;

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![test!(the_lab_starts_endpoints_on_loopback_and_states_its_limits)]
}

fn the_lab_starts_endpoints_on_loopback_and_states_its_limits() {
    let mut lab = Loopback::start(&std::env::current_exe().unwrap()).unwrap();
    assert_eq!(lab.info().name, "loopback");
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    assert_eq!(lab.warnings(), [Warning::LoopbackMtu { mtu }]);
    let error = lab.check(&job("other-node")).unwrap_err().to_string();
    assert!(error.contains("no placement `other-node`: its only one is `local`"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let stop = AtomicBool::new(false);
    let preparation = Preparation { jobs: &[], folder: folder.path(), stop: &stop, metrics: None };
    let mut prepared = lab.prepare(&preparation).unwrap();
    let (job, trial) = (job("local"), Trial { number: 0, block: 0, position: 0, cell: 0, seed: 1 });
    let mut arena = prepared.open(&trial, &job).unwrap();
    let addresses = arena.addresses();
    assert!(addresses.connect.is_loopback() && addresses.servers == [addresses.connect] && arena.has_clock());
    let script = r#"echo '{"event":"ready","port":80}'; read word; echo '{"event":"done"}'"#;
    let endpoint = Endpoint {
        name: "script".to_owned(),
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        environment: IndexMap::new(),
        folder: None,
        installation: None,
    };
    let (spec, log) = (folder.path().join("spec"), folder.path().join("log"));
    let launch = Launch { role: Role::Server, number: 0, endpoint: &endpoint, spec: &spec, log: &log };
    let mut server = arena.start(&launch).unwrap();
    drop(arena);
    drop(prepared);
    // The lab may be dropped first; its guard stays as long as processes exist.
    drop(lab);
    let soon = || Instant::now() + Duration::from_secs(60);
    assert!(matches!(server.next_event(soon()), Ok(Event::Ready { port: Some(80), .. })));
    server.send(Command::Stop).unwrap();
    assert!(matches!(server.next_event(soon()), Ok(Event::Done { .. })));
    assert_eq!(server.end(soon()).status, ExitStatus::Code(0));
}

fn job(placement: &str) -> Job {
    let script = || "script".to_owned();
    let target = Target::Servers(OwnServers::one(&script()));
    Job { target, client: script(), topology: Topology::at(placement), ..Job::plain(Protocol::H1) }
}
