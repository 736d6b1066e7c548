//! Trials with sidecars in the fake lab: their specs, the lists of new servers, and the blame.

use std::net::IpAddr;

use crate::support::{Changed, Changes, Started, coming_and_going, executed};
use wirelab_lab::fake::{Misbehaviour, Moment, Noise, Script};
use wirelab_lab::{Beside, Fake, Lab, LabError, Launch, Role};
use wirelab_model::journal::TrialRecord;
use wirelab_model::outcome::{Blame, ErrorKind, Outcome};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::SidecarSpec;

/// Records the specs of sidecars, servers and clients.
#[derive(Default)]
struct Noting {
    sidecars: Vec<(Beside, u32, SidecarSpec, Vec<String>)>,
    started: Started,
    has_no_sidecars: bool,
}

fn lab(script: Script) -> Changed<Noting> {
    Changed { fake: Fake::new(script.with_noise(Noise::NONE)), changes: Noting::default() }
}

impl Changes for Noting {
    fn sidecars(&self, sidecars: Vec<IpAddr>) -> Result<Vec<IpAddr>, LabError> {
        if self.has_no_sidecars {
            return Err(LabError::unsupported("there are none here"));
        }
        // Each sidecar has its own address.
        Ok((0..sidecars.len() as u8).map(|number| [10, 0, 0, number].into()).collect())
    }

    fn reach(&mut self, _: &[(u32, u16)]) -> Result<(), LabError> {
        Err(LabError::unsupported("with sidecars only the sidecars get the servers"))
    }

    fn starts(&mut self, launch: &Launch<'_>) {
        if let Some(text) = self.started.note(launch) {
            let Role::Sidecar(beside) = launch.role else { panic!("no sidecar is expected") };
            assert_eq!(launch.endpoint.name, "proxy");
            let spec: SidecarSpec = serde_json::from_str(&text).unwrap();
            let named = serde_json::from_slice(&std::fs::read(&spec.upstreams).unwrap()).unwrap();
            self.sidecars.push((beside, launch.number, spec, named));
        }
    }
}

/// The trials of a run.
fn trials(lab: &mut dyn Lab) -> Vec<TrialRecord> {
    let parent = tempfile::tempdir().unwrap();
    let study = coming_and_going("mesh = 'proxy'\nexchange = 'heron'", ["grpcc", "h1c"]);
    let run = executed(parent.path(), &study, &["builtin", "proxy"], lab);
    // The observer of sidecars is part of every study with sidecars.
    assert_eq!(run.manifest().observers, ["sidecars"]);
    assert!(run.manifest().endpoints.contains_key("proxy"));
    run.trials().to_vec()
}

#[test]
fn each_server_has_a_sidecar_and_the_clients_sidecar_knows_the_current_ones() {
    let mut lab = lab(Script::plausible());
    let trials = trials(&mut lab);
    let lab = lab.changes;
    assert!(trials.iter().all(|trial| trial.outcome == Outcome::Ok), "{trials:?}");
    let actions: Vec<_> = trials[0].timeline.as_ref().unwrap().actions.iter().map(|action| &action.name).collect();
    assert_eq!(actions, ["T2", "T3"]);
    // Three sidecars beside servers, one of them later, and one beside the clients.
    assert_eq!(lab.sidecars.len(), trials.len() * 4);
    for of_trial in lab.sidecars.chunks(4) {
        let places: Vec<_> = of_trial.iter().map(|(beside, number, ..)| (*beside, *number)).collect();
        let beside = |number| (Beside::Server, number);
        assert_eq!(places, [beside(0), beside(1), beside(2), (Beside::Clients, 0)]);
        let (_, _, of_clients, named) = &of_trial[3];
        // The addresses that the fake sidecars report; the third sidecar has not started yet.
        assert_eq!(named, &["10.0.0.0:40000", "10.0.0.1:40000"]);
        let between = if of_clients.protocol == Protocol::Grpcc { Protocol::Grpcc } else { Protocol::H2c };
        assert_eq!(of_clients.upstream_protocol, between);
        for (number, (_, _, of_server, named)) in of_trial[..3].iter().enumerate() {
            assert_eq!(of_server.address, IpAddr::from([10, 0, 0, number as u8]));
            assert_eq!((of_server.protocol, of_server.upstream_protocol), (between, of_clients.protocol));
            assert_eq!(named, &["127.0.0.1:40000"]);
        }
    }
    assert!(lab.started.servers.iter().all(|spec| spec.port == 0 && spec.address.is_loopback()));
    assert!(lab.started.clients.iter().all(|spec| spec.port == 40_000 && spec.address.is_loopback()));
}

/// The outcome of a trial in which the sidecars at this place misbehave.
fn outcome(of: Beside, moment: Moment, misbehaviour: &Misbehaviour) -> Outcome {
    let misbehaviour = misbehaviour.clone();
    let script = Script::plausible()
        .with_trouble(move |case| (case.role == Role::Sidecar(of)).then(|| (moment, misbehaviour.clone())));
    trials(&mut lab(script))[0].outcome.clone()
}

#[test]
fn a_failing_sidecar_gets_the_blame() {
    let fails = Misbehaviour::Fails(ErrorKind::Other, "no more memory".to_owned());
    let (dies, hangs) = (Misbehaviour::Dies(11), Misbehaviour::Hangs);
    for (of, moment, misbehaviour, words) in [
        (Beside::Server, Moment::Start, &dies, "`proxy` of a server was killed by signal 11 while starting"),
        (
            Beside::Clients,
            Moment::Start,
            &fails,
            "`proxy` of the clients reported `other` while starting: no more memory",
        ),
        (Beside::Server, Moment::Window, &dies, "`proxy` of a server was killed by signal 11"),
        (Beside::Clients, Moment::Window, &dies, "`proxy` of the clients was killed by signal 11"),
        (Beside::Clients, Moment::Reach, &hangs, "printed no event for 10.0 s while reading the new server list"),
        (Beside::Server, Moment::Finish, &dies, "was killed by signal 11 while stopping"),
    ] {
        let Outcome::Failed { blame, reason } = outcome(of, moment, misbehaviour) else { panic!("{words}") };
        assert_eq!(blame, Blame::Sidecar, "{reason}");
        assert!(reason.to_string().contains(words), "{reason}");
    }
    let refuses = Misbehaviour::Unsupported("no such window".to_owned());
    let Outcome::Unsupported { reason } = outcome(Beside::Server, Moment::Start, &refuses) else { panic!() };
    assert!(reason.to_string().contains("the sidecar `proxy` of a server: no such window"), "{reason}");
}

#[test]
fn a_wrong_answer_through_a_sidecar_is_not_blamed_on_the_running_server() {
    for (kind, blame) in [(ErrorKind::Status, Blame::Sidecar), (ErrorKind::Other, Blame::Client)] {
        let script = Script::plausible().with_trouble(move |case| {
            (case.role == Role::Client).then(|| (Moment::Check, Misbehaviour::Fails(kind, "status 503".to_owned())))
        });
        let outcome = trials(&mut lab(script))[0].outcome.clone();
        let Outcome::Failed { blame: found, reason } = outcome else { panic!("{outcome:?}") };
        assert_eq!(found, blame, "{reason}");
    }
}

#[test]
fn a_lab_without_sidecars_is_no_failure_and_nothing_is_started_for_it() {
    let mut lab = lab(Script::plausible());
    lab.changes.has_no_sidecars = true;
    let outcomes: Vec<_> = trials(&mut lab).into_iter().map(|trial| trial.outcome).collect();
    let lab = lab.changes;
    let is_right = |outcome: &Outcome| match outcome {
        Outcome::Unsupported { reason } => reason.to_string() == "there are none here",
        _ => false,
    };
    assert!(outcomes.iter().all(is_right), "{outcomes:?}");
    assert!(lab.started.servers.is_empty() && lab.sidecars.is_empty() && lab.started.clients.is_empty());
}
