//! Cases of a control plane, between the endpoint's own client and the reference endpoint as servers.

use std::path::Path;

use serde_json::json;
use wirelab_lab::Role;
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::Role as Abilities;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ClientSpec, ControlPlaneSpec, Extent, Feature, Pause, Schedule, ServerSpec};

use crate::case::Case;
use crate::cases::members::{InvalidValue, accepted, file, name, refusals};
use crate::cases::refusals::random_word;
use crate::conversation::{Answer, Server, Warm, json as as_json, warm_client};
use crate::finding::{Finding, Stop, demand};
use crate::material::SERVER_NAME;
use crate::pair::{LOCALHOST, Pair};
use crate::stage::Stage;

const ROLE: Role = Role::ControlPlane;

/// Number of a client's requests, one millisecond apart: many more than it sends while it connects to a newly announced
/// server.
const REQUESTS: u64 = 400;

/// Values that an endpoint must refuse: description, location, value.
const REFUSALS: &[InvalidValue] = &[
    ("an unknown protocol", "/protocol", random_word),
    ("another version of the contract", "/contract", || json!(4_000_000)),
    ("an unknown field", "/x-unknown-field", || json!(1)),
];

/// The cases of a control plane.
pub fn cases(abilities: &Abilities) -> Vec<Case> {
    let mut cases = refusals(ROLE, abilities, REFUSALS, |protocol, servers| as_json(&spec(protocol, servers)));
    for &protocol in &abilities.protocols {
        let case = |name: &str, run: fn(&Stage, Protocol) -> Finding| {
            Case::new(ROLE, protocol, name, move |stage| run(stage, protocol))
        };
        cases.extend([
            case("it ends cleanly on `stop`", |stage, protocol| idle(stage, protocol)?.stop(true).map(drop)),
            case("it ends cleanly at the end of its input", |stage, protocol| {
                idle(stage, protocol)?.stop(false).map(drop)
            }),
            case("it ends cleanly on `stop` while a client is connected", connected),
            case("after `reached` a connected client uses exactly the named servers", reaches),
            case("a client's requests go to all named servers in turn", in_turn),
        ]);
    }
    cases
}

fn spec(protocol: Protocol, members: &Path) -> ControlPlaneSpec {
    ControlPlaneSpec {
        contract: CONTRACT_VERSION,
        protocol,
        address: LOCALHOST,
        port: 0,
        server_name: SERVER_NAME.to_owned(),
        members: members.to_owned(),
    }
}

fn start<'a>(stage: &'a Stage, protocol: Protocol, members: &Path) -> Finding<Server<'a>> {
    accepted(Server::start_as(stage, &stage.subject, ROLE, &as_json(&spec(protocol, members)))?)
}

fn idle(stage: &Stage, protocol: Protocol) -> Finding<Server<'_>> {
    let mut control_plane = start(stage, protocol, &file(stage, &[])?)?;
    // Without clients, `reached` follows at once.
    control_plane.reach()?;
    Ok(control_plane)
}

fn pair(stage: &Stage, protocol: Protocol) -> Pair {
    Pair::new(stage, Role::Server, protocol, Feature::Heron, 0).persistent(1, 1)
}

fn serve(stage: &Stage, protocol: Protocol) -> Finding<Server<'_>> {
    let spec = ServerSpec { counts: true, ..pair(stage, protocol).server };
    accepted(Server::start(stage, &stage.reference, &as_json(&spec))?)
}

/// The endpoint's client after `warm`, with the control plane at this port.
fn client(stage: &Stage, protocol: Protocol, port: u16) -> Finding<Warm<'_>> {
    let schedule = Schedule::Closed { workers: 1, pause: Pause::Fixed { ns: 1_000_000 } };
    let extent = Extent::Requests(REQUESTS);
    let spec = ClientSpec { port, discovers: true, schedule, extent, ..pair(stage, protocol).client };
    match warm_client(stage, &stage.subject, &as_json(&spec))? {
        Answer::Unsupported(why) => Err(Stop::skip(format!("its own client does not support control planes: {why}"))),
        answer => accepted(answer),
    }
}

/// Runs a client's window, in which every request must succeed.
fn measure(client: Warm<'_>) -> Finding {
    let (ok, failed) = client.measure()?;
    demand((ok, failed) == (REQUESTS, 0), || {
        format!("expected {REQUESTS} requests to succeed; {ok} did, and {failed} failed")
    })
}

fn connected(stage: &Stage, protocol: Protocol) -> Finding {
    let server = serve(stage, protocol)?;
    let control_plane = start(stage, protocol, &file(stage, &[&server])?)?;
    let client = client(stage, protocol, control_plane.port)?;
    control_plane.stop(true)?;
    // The client keeps the servers that it already knows.
    measure(client)
}

fn reaches(stage: &Stage, protocol: Protocol) -> Finding {
    let [mut one, mut other] = [serve(stage, protocol)?, serve(stage, protocol)?];
    let path = file(stage, &[&one])?;
    let mut control_plane = start(stage, protocol, &path)?;
    let client = client(stage, protocol, control_plane.port)?;
    let before = [one.count()?, other.count()?];
    demand(before == [1, 0], || format!("expected the check request to reach the one server; {before:?}"))?;
    name(&path, &[&other])?;
    control_plane.reach()?;
    measure(client)?;
    let after = [one.count()? - 1, other.count()?];
    demand(after[0] + after[1] == REQUESTS && after[1] > REQUESTS / 2, || {
        format!(
            "expected {REQUESTS} requests to reach the other server, except while the client connected to it; {after:?}"
        )
    })?;
    control_plane.stop(true).map(drop)
}

fn in_turn(stage: &Stage, protocol: Protocol) -> Finding {
    let [mut one, mut other] = [serve(stage, protocol)?, serve(stage, protocol)?];
    let control_plane = start(stage, protocol, &file(stage, &[&one, &other])?)?;
    measure(client(stage, protocol, control_plane.port)?)?;
    let both = [one.count()?, other.count()?];
    demand(both[0] + both[1] == REQUESTS + 1 && both[0].abs_diff(both[1]) < REQUESTS / 4, || {
        format!("expected {REQUESTS} requests and the check request to reach two servers in turn; {both:?}")
    })?;
    control_plane.stop(true).map(drop)
}
