//! Trials with a control plane in the fake lab: with which spec it is started, what it and the clients are told, who gets the blame.

mod support;

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;

use support::created;
use wirelab_lab::fake::{Misbehaviour, Moment, Noise, Script};
use wirelab_lab::{Addresses, Fake, Lab, LabError, Launch, Process, Role};
use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::plan::{Job, Trial};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ClientSpec, ControlPlaneSpec, ServerSpec};
use wirelab_model::warning::Warning;

/// A third server after one of three seconds, and the first one killed after two.
const STUDY: &str = r#"
name = "told"
title = "Told"
question = "Who is told?"
lab = "fake"
observers = []
[workload]
network = "overlay"
placement = "lan"
servers = "2 far"
duration = "3 s"
pause = "10 ms"
control_plane = "plane"
[factors]
protocol = ["grpcc", "grpc"]
[timeline]
actions = [
    { name = "T2", at = "33 %", servers = "3 far" },
    { name = "T3", at = "66 %", kill = 0 },
]
[compare]
factor = "protocol"
baseline = "grpc"
[blocks]
min = 1
max = 1
"#;

/// A fake lab that keeps in mind what the control plane was given, and servers and clients with it.
struct Noting {
    fake: Fake,
    planes: Vec<(ControlPlaneSpec, Vec<String>)>,
    servers: Vec<ServerSpec>,
    clients: Vec<ClientSpec>,
    has_none: bool,
    /// What the last trial's members are at its end.
    last: Vec<String>,
}

impl Noting {
    fn new(script: Script) -> Self {
        let fake = Fake::new(script.with_noise(Noise::NONE));
        let (planes, servers, clients) = (Vec::new(), Vec::new(), Vec::new());
        Self { fake, planes, servers, clients, has_none: false, last: Vec::new() }
    }
}

impl Lab for Noting {
    fn name(&self) -> &'static str {
        self.fake.name()
    }

    fn warnings(&self) -> Vec<Warning> {
        Vec::new()
    }

    fn addresses(&self, job: &Job) -> Result<Addresses, LabError> {
        // Each has an address of its own.
        let Addresses { servers, connect } = self.fake.addresses(job)?;
        let servers = (0..servers.len() as u8).map(|number| [10, 0, 0, number].into()).collect();
        Ok(Addresses { servers, connect })
    }

    fn control_plane(&self, _: &Job) -> Result<IpAddr, LabError> {
        if self.has_none { Err(LabError("there is none here".to_owned())) } else { Ok([127, 0, 0, 9].into()) }
    }

    fn begin_trial(&mut self, trial: &Trial, job: &Job) -> Result<(), LabError> {
        self.fake.begin_trial(trial, job)
    }

    fn publish(&mut self, _: &Job, _: &[u16]) -> Result<u16, LabError> {
        Err(LabError("with a control plane there is no service".to_owned()))
    }

    fn reach(&mut self, _: &Job, _: &[(u32, u16)]) -> Result<(), LabError> {
        Err(LabError("with a control plane nobody else is told of servers".to_owned()))
    }

    fn end_trial(&mut self, cell: &str) -> Result<wirelab_lab::Aftermath, LabError> {
        if let Some((spec, _)) = self.planes.last() {
            self.last = serde_json::from_slice(&std::fs::read(&spec.members).unwrap()).unwrap();
        }
        self.fake.end_trial(cell)
    }

    fn start(&mut self, launch: &Launch<'_>) -> Result<Box<dyn Process>, LabError> {
        let text = std::fs::read_to_string(launch.spec).unwrap();
        match launch.role {
            Role::Server => self.servers.push(serde_json::from_str(&text).unwrap()),
            Role::Client => self.clients.push(serde_json::from_str(&text).unwrap()),
            Role::ControlPlane => {
                assert_eq!(launch.endpoint.name, "plane");
                let spec: ControlPlaneSpec = serde_json::from_str(&text).unwrap();
                let named = serde_json::from_slice(&std::fs::read(&spec.members).unwrap()).unwrap();
                self.planes.push((spec, named));
            }
            Role::Sidecar(_) => panic!("nobody asked for one"),
        }
        self.fake.start(launch)
    }
}

/// The trials of a run.
fn trials(lab: &mut dyn Lab) -> Vec<TrialRecord> {
    let parent = tempfile::tempdir().unwrap();
    let mut run = created(parent.path(), STUDY, &["builtin", "plane"], lab);
    assert!(run.manifest().endpoints.contains_key("plane"));
    run.execute(lab, &mut |_| {}, &AtomicBool::new(false)).unwrap();
    run.trials().to_vec()
}

#[test]
fn the_control_plane_knows_who_is_there_and_clients_know_the_control_plane() {
    let mut lab = Noting::new(Script::plausible());
    let trials = trials(&mut lab);
    assert!(trials.iter().all(|trial| trial.outcome == Outcome::Ok), "{trials:?}");
    let actions: Vec<_> = trials[0].timeline.as_ref().unwrap().actions.iter().map(|action| &action.name).collect();
    assert_eq!(actions, ["T2", "T3"]);
    assert_eq!(lab.planes.len(), trials.len());
    for (spec, named) in &lab.planes {
        assert!(matches!(spec.protocol, Protocol::Grpcc | Protocol::Grpc));
        assert_eq!((spec.address, spec.port), (IpAddr::from([127, 0, 0, 9]), 0));
        // Where the fake ones say that they listen; the third one is not there yet.
        assert_eq!(named, &["10.0.0.0:40000", "10.0.0.1:40000"]);
    }
    // The third one has come, and the first one was killed.
    assert_eq!(lab.last, ["10.0.0.1:40000", "10.0.0.2:40000"]);
    assert!(lab.servers.iter().all(|spec| spec.port == 0));
    let name = &lab.planes[0].0.server_name;
    for spec in &lab.clients {
        assert!(spec.discovers && spec.addresses.is_empty() && &spec.server_name == name, "{spec:?}");
        assert_eq!((spec.address, spec.port), (IpAddr::from([127, 0, 0, 9]), 40_000));
    }
}

#[test]
fn what_the_control_plane_does_wrong_is_its_own_fault() {
    let fails = Misbehaviour::Fails(ErrorKind::Protocol, "a client refuses it".to_owned());
    let (dies, hangs) = (Misbehaviour::Dies(11), Misbehaviour::Hangs);
    for (moment, misbehaviour, words) in [
        (Moment::Start, &dies, "the control plane `plane` was killed by signal 11 while starting"),
        (Moment::Window, &dies, "the control plane `plane` was killed by signal 11"),
        (Moment::Reach, &fails, "reported `protocol` while learning of other servers: a client refuses it"),
        (Moment::Reach, &hangs, "said nothing for 10.0 s while learning of other servers"),
        (Moment::Finish, &dies, "was killed by signal 11 while stopping"),
    ] {
        let misbehaviour = misbehaviour.clone();
        let script = Script::plausible()
            .with_trouble(move |case| (case.role == Role::ControlPlane).then(|| (moment, misbehaviour.clone())));
        let outcome = trials(&mut Noting::new(script))[0].outcome.clone();
        let Outcome::Failed { blame, reason } = outcome else { panic!("{words}") };
        assert_eq!(blame, Blame::ControlPlane, "{reason}");
        assert!(reason.contains(words), "{reason}");
    }
}

#[test]
fn a_lab_without_control_planes_is_no_failure_and_nothing_is_started_for_it() {
    let mut lab = Noting { has_none: true, ..Noting::new(Script::plausible()) };
    let outcomes: Vec<_> = trials(&mut lab).into_iter().map(|trial| trial.outcome).collect();
    let reason = "there is none here".to_owned();
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Unsupported { reason: reason.clone() }), "{outcomes:?}");
    assert!(lab.servers.is_empty() && lab.planes.is_empty() && lab.clients.is_empty());
}
