//! Cases of a sidecar, between the reference endpoint as client and as servers.

use std::path::Path;

use serde_json::json;
use wirelab_lab::{Beside, Role};
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::Role as Abilities;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ClientSpec, Congestion, Feature, ServerSpec, SidecarSpec, Transport};

use crate::case::Case;
use crate::cases::members::{InvalidValue, accepted, file, name, refusals};
use crate::cases::refusals::random_word;
use crate::conversation::{Answer, Server, json as as_json, run};
use crate::finding::{Finding, demand};
use crate::pair::{LOCALHOST, Pair};
use crate::stage::Stage;

/// The role; its location does not change the requirements.
const SIDECAR: Role = Role::Sidecar(Beside::Clients);

/// Values that an endpoint must refuse: description, location, value.
const REFUSALS: &[InvalidValue] = &[
    ("an unknown protocol", "/protocol", random_word),
    ("an unknown protocol of the upstreams", "/upstream_protocol", random_word),
    ("another version of the contract", "/contract", || json!(4_000_000)),
    ("an unknown field", "/x-unknown-field", || json!(1)),
    ("an unknown transport setting", "/transport/x-unknown-field", || json!(true)),
    ("an unknown congestion control", "/transport/congestion", random_word),
];

/// The cases of a sidecar.
pub fn cases(abilities: &Abilities) -> Vec<Case> {
    let mut cases = refusals(SIDECAR, abilities, REFUSALS, |protocol, servers| as_json(&spec(protocol, servers)));
    for &protocol in &abilities.protocols {
        let case = |name: &str, run: fn(&Stage, Protocol) -> Finding| {
            Case::new(SIDECAR, protocol, name, move |stage| run(stage, protocol))
        };
        cases.extend([
            case("it ends cleanly on `stop`", |stage, protocol| idle(stage, protocol)?.stop(true).map(drop)),
            case("it ends cleanly at the end of its input", |stage, protocol| {
                idle(stage, protocol)?.stop(false).map(drop)
            }),
            case("each request goes to the next upstream, after `reach` to new ones too, and is counted", in_turn),
            case("transport settings are honoured or unsupported", honours),
        ]);
    }
    cases
}

fn spec(protocol: Protocol, upstreams: &Path) -> SidecarSpec {
    SidecarSpec {
        contract: CONTRACT_VERSION,
        protocol,
        upstream_protocol: protocol,
        address: LOCALHOST,
        port: 0,
        upstreams: upstreams.to_owned(),
        threads: None,
        transport: Transport::default(),
    }
}

fn idle(stage: &Stage, protocol: Protocol) -> Finding<Server<'_>> {
    let server = serve(stage, protocol)?;
    let spec = spec(protocol, &file(stage, &[&server])?);
    accepted(Server::start_as(stage, &stage.subject, SIDECAR, &as_json(&spec))?)
}

/// Client and server of a small request, both the reference endpoint.
fn pair(stage: &Stage, protocol: Protocol) -> Pair {
    let feature = if protocol.is_grpc() { Feature::Heron } else { Feature::Bytes };
    Pair::new(stage, Role::Server, protocol, feature, 1_000).persistent(1, 1)
}

fn serve(stage: &Stage, protocol: Protocol) -> Finding<Server<'_>> {
    let spec = ServerSpec { counts: true, ..pair(stage, protocol).server };
    accepted(Server::start(stage, &stage.reference, &as_json(&spec))?)
}

/// Sends requests to a port; returns their number, including the check request.
fn request(stage: &Stage, protocol: Protocol, port: u16) -> Finding<u64> {
    let spec = ClientSpec { port, ..pair(stage, protocol).client };
    let done = accepted(run(stage, &stage.reference, &spec)?)?;
    demand(done.errors.is_empty(), || format!("expected every request to succeed; {:?}", done.errors))?;
    Ok(1 + done.requests.unwrap_or_default())
}

fn in_turn(stage: &Stage, protocol: Protocol) -> Finding {
    let [mut one, mut other] = [serve(stage, protocol)?, serve(stage, protocol)?];
    let path = file(stage, &[&one])?;
    let spec = spec(protocol, &path);
    let mut sidecar = accepted(Server::start_as(stage, &stage.subject, SIDECAR, &as_json(&spec))?)?;
    let first = request(stage, protocol, sidecar.port)?;
    let alone = [one.count()?, other.count()?, sidecar.count()?];
    demand(alone == [first, 0, first], || {
        format!("expected all {first} requests to reach the one upstream and to be counted; {alone:?}")
    })?;
    name(&path, &[&one, &other])?;
    sidecar.reach()?;
    let second = request(stage, protocol, sidecar.port)?;
    let both = [one.count()? - first, other.count()?, sidecar.count()? - first];
    demand(both[0].abs_diff(both[1]) <= 1 && both[0] + both[1] == second && both[2] == second, || {
        format!(
            "expected {second} requests on one connection to reach two upstreams in turn and to be counted; {both:?}"
        )
    })?;
    sidecar.stop(true).map(drop)
}

fn honours(stage: &Stage, protocol: Protocol) -> Finding {
    let server = serve(stage, protocol)?;
    let window = protocol.multiplexes().then_some(1 << 20);
    let transport = Transport {
        congestion: Some(Congestion::Reno),
        stream_window: window,
        no_delay: Some(true),
        ..Transport::default()
    };
    let spec = SidecarSpec { transport, ..spec(protocol, &file(stage, &[&server])?) };
    let sidecar = match Server::start_as(stage, &stage.subject, SIDECAR, &as_json(&spec))? {
        Answer::Unsupported(_) => return Ok(()),
        other => accepted(other)?,
    };
    for (field, value) in as_json(&spec.transport).as_object().into_iter().flatten() {
        let told = sidecar.configured.get(field);
        demand(told == Some(value), || format!("expected `configured.{field}` to be {value}; it is {told:?}"))?;
    }
    request(stage, protocol, sidecar.port)?;
    sidecar.stop(true).map(drop)
}
