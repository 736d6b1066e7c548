//! The loopback lab, with this program as its guard.

use std::time::{Duration, Instant};

use indexmap::IndexMap;
use wirelab_lab::{ExitStatus, Lab, Launch, Loopback, Role};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::event::{Command, Event};
use wirelab_model::plan::{Job, OwnServers, Target, Topology};
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
    assert_eq!(lab.name(), "loopback");
    let mtu = std::fs::read_to_string("/sys/class/net/lo/mtu").unwrap().trim().parse().unwrap();
    assert_eq!(lab.warnings(), [Warning::LoopbackMtu { mtu }]);
    let addresses = lab.addresses(&job("local")).unwrap();
    assert!(addresses.connect.is_loopback() && addresses.servers == [addresses.connect]);
    let error = lab.addresses(&job("other-node")).unwrap_err().to_string();
    assert!(error.contains("no placement `other-node`: its only one is `local`"), "{error}");

    let folder = tempfile::tempdir().unwrap();
    let script = r#"echo '{"event":"ready","port":80}'; read word; echo '{"event":"done"}'"#;
    let endpoint = Endpoint {
        name: "script".to_owned(),
        command: ["/bin/sh", "-c", script].map(str::to_owned).to_vec(),
        environment: IndexMap::new(),
        folder: None,
        installation: None,
    };
    let (job, spec, log) = (job("local"), folder.path().join("spec"), folder.path().join("log"));
    let launch = Launch { role: Role::Server, number: 0, endpoint: &endpoint, job: &job, spec: &spec, log: &log };
    let mut server = lab.start(&launch).unwrap();
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
