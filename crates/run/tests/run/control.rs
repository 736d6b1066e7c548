//! Trials with a control plane in the fake lab: its spec, the server lists for it and for the clients, and the blame.

use std::net::IpAddr;

use crate::support::{Changed, Changes, Started, coming_and_going, executed};
use wirelab_lab::fake::{Misbehaviour, Moment, Noise, Script};
use wirelab_lab::{Addresses, Fake, Lab, LabError, Launch, Role};
use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::ControlPlaneSpec;

/// Records the specs of the control plane, the servers and the clients.
#[derive(Default)]
struct Noting {
    planes: Vec<(ControlPlaneSpec, Vec<String>)>,
    started: Started,
    has_none: bool,
    /// The server list at the end of the last trial.
    last: Vec<String>,
}

fn lab(script: Script) -> Changed<Noting> {
    Changed { fake: Fake::new(script.with_noise(Noise::NONE)), changes: Noting::default() }
}

impl Changes for Noting {
    fn addresses(&self, Addresses { servers, connect }: Addresses) -> Addresses {
        // Each server has its own address.
        let servers = (0..servers.len() as u8).map(|number| [10, 0, 0, number].into()).collect();
        Addresses { servers, connect }
    }

    fn control_plane(&self, _: IpAddr) -> Result<IpAddr, LabError> {
        if self.has_none { Err(LabError::unsupported("there is none here")) } else { Ok([127, 0, 0, 9].into()) }
    }

    fn publish(&mut self, _: &[u16]) -> Result<u16, LabError> {
        Err(LabError::unsupported("with a control plane there is no service"))
    }

    fn reach(&mut self, _: &[(u32, u16)]) -> Result<(), LabError> {
        Err(LabError::unsupported("with a control plane only the control plane gets the servers"))
    }

    fn window_ends(&mut self) {
        if let Some((spec, _)) = self.planes.last() {
            self.last = serde_json::from_slice(&std::fs::read(&spec.members).unwrap()).unwrap();
        }
    }

    fn starts(&mut self, launch: &Launch<'_>) {
        if let Some(text) = self.started.note(launch) {
            assert_eq!((launch.role, launch.endpoint.name.as_str()), (Role::ControlPlane, "plane"));
            let spec: ControlPlaneSpec = serde_json::from_str(&text).unwrap();
            let named = serde_json::from_slice(&std::fs::read(&spec.members).unwrap()).unwrap();
            self.planes.push((spec, named));
        }
    }
}

/// The trials of a run.
fn trials(lab: &mut dyn Lab) -> Vec<TrialRecord> {
    let parent = tempfile::tempdir().unwrap();
    let study = coming_and_going("control_plane = 'plane'", ["grpcc", "grpc"]);
    let run = executed(parent.path(), &study, &["builtin", "plane"], lab);
    assert!(run.manifest().endpoints.contains_key("plane"));
    run.trials().to_vec()
}

#[test]
fn the_control_plane_knows_who_is_there_and_clients_know_the_control_plane() {
    let mut lab = lab(Script::plausible());
    let trials = trials(&mut lab);
    let lab = lab.changes;
    assert!(trials.iter().all(|trial| trial.outcome == Outcome::Ok), "{trials:?}");
    let actions: Vec<_> = trials[0].timeline.as_ref().unwrap().actions.iter().map(|action| &action.name).collect();
    assert_eq!(actions, ["T2", "T3"]);
    assert_eq!(lab.planes.len(), trials.len());
    for (spec, named) in &lab.planes {
        assert!(matches!(spec.protocol, Protocol::Grpcc | Protocol::Grpc));
        assert_eq!((spec.address, spec.port), (IpAddr::from([127, 0, 0, 9]), 0));
        // The addresses that the fake servers report; the third server has not started yet.
        assert_eq!(named, &["10.0.0.0:40000", "10.0.0.1:40000"]);
    }
    // The third server has started, and the first one was killed.
    assert_eq!(lab.last, ["10.0.0.1:40000", "10.0.0.2:40000"]);
    assert!(lab.started.servers.iter().all(|spec| spec.port == 0));
    let name = &lab.planes[0].0.server_name;
    for spec in &lab.started.clients {
        assert!(spec.discovers && spec.addresses.is_empty() && &spec.server_name == name, "{spec:?}");
        assert_eq!((spec.address, spec.port), (IpAddr::from([127, 0, 0, 9]), 40_000));
    }
}

#[test]
fn a_failing_control_plane_gets_the_blame() {
    let fails = Misbehaviour::Fails(ErrorKind::Protocol, "a client refuses it".to_owned());
    let (dies, hangs) = (Misbehaviour::Dies(11), Misbehaviour::Hangs);
    for (moment, misbehaviour, words) in [
        (Moment::Start, &dies, "the control plane `plane` was killed by signal 11 while starting"),
        (Moment::Window, &dies, "the control plane `plane` was killed by signal 11"),
        (Moment::Reach, &fails, "reported `protocol` while reading the new server list: a client refuses it"),
        (Moment::Reach, &hangs, "printed no event for 10.0 s while reading the new server list"),
        (Moment::Finish, &dies, "was killed by signal 11 while stopping"),
    ] {
        let misbehaviour = misbehaviour.clone();
        let script = Script::plausible()
            .with_trouble(move |case| (case.role == Role::ControlPlane).then(|| (moment, misbehaviour.clone())));
        let outcome = trials(&mut lab(script))[0].outcome.clone();
        let Outcome::Failed { blame, reason } = outcome else { panic!("{words}") };
        assert_eq!(blame, Blame::ControlPlane, "{reason}");
        assert!(reason.to_string().contains(words), "{reason}");
    }
}

#[test]
fn a_lab_without_control_planes_is_no_failure_and_nothing_is_started_for_it() {
    let mut lab = lab(Script::plausible());
    lab.changes.has_none = true;
    let outcomes: Vec<_> = trials(&mut lab).into_iter().map(|trial| trial.outcome).collect();
    let lab = lab.changes;
    let is_right = |outcome: &Outcome| match outcome {
        Outcome::Unsupported { reason } => reason.to_string() == "there is none here",
        _ => false,
    };
    assert!(outcomes.iter().all(is_right), "{outcomes:?}");
    assert!(lab.started.servers.is_empty() && lab.planes.is_empty() && lab.started.clients.is_empty());
}
