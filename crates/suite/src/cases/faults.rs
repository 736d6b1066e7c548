//! Cases of faults, which a client must report with the correct kind: in the `error` of the check request, or in the
//! records.

use wirelab_lab::Role;
use wirelab_model::heron;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{ClientSpec, Expect, Extent, Feature};

use crate::case::Case;
use crate::conversation::{Answer, run};
use crate::finding::{Finding, Stop, demand};
use crate::hostile::{self, Fault, Hostile};
use crate::pair::{Pair, sha256};
use crate::stage::Stage;
use crate::verify;

use super::deadlines::{NotInTime, Try, both, in_time, records};

/// A change of the expectation, so that the response to the check request differs from it.
struct Wrong {
    name: &'static str,
    kinds: &'static [ErrorKind],
    /// Whether a client can detect the difference in a protocol.
    shows: fn(Protocol) -> bool,
    change: fn(&mut Expect),
}

const WRONG: &[Wrong] = &[
    Wrong {
        name: "a body with another digest is `digest`",
        kinds: &[ErrorKind::Digest],
        shows: |_| true,
        change: |expect| expect.sha256 = sha256(b"another body"),
    },
    Wrong {
        name: "an unexpected status is `status`",
        kinds: &[ErrorKind::Status],
        shows: Protocol::is_http,
        change: |expect| expect.status = 204,
    },
    Wrong {
        name: "a body that is too short is `truncated`",
        kinds: &[ErrorKind::Truncated],
        shows: framed,
        change: |expect| expect.body_size += 1,
    },
    Wrong {
        name: "a body that is too long is `digest`",
        kinds: &[ErrorKind::Digest],
        shows: framed,
        change: |expect| expect.body_size -= 1,
    },
];

/// Whether a response has its own size, independent of the requested size.
const fn framed(protocol: Protocol) -> bool {
    protocol.is_http() || protocol.is_grpc()
}

/// The cases of a client with a protocol.
pub fn cases(protocol: Protocol) -> Vec<Case> {
    let case = |name: &str, run: fn(&Stage, Protocol) -> Finding| {
        Case::new(Role::Client, protocol, name, move |stage| run(stage, protocol))
    };
    let mut cases: Vec<_> = WRONG
        .iter()
        .filter(|wrong| (wrong.shows)(protocol))
        .map(|wrong| {
            Case::new(Role::Client, protocol, wrong.name, move |stage| {
                let mut pair = Pair::simple(stage, Role::Client, protocol)?;
                pair.client.request.expect.as_mut().map(wrong.change);
                let server = pair.serve(stage)?;
                fails_check(stage, &pair, server.port, wrong.kinds)
            })
        })
        .collect();
    if protocol.is_http() {
        cases.push(case("a redirect is not followed: it is `status`", |stage, protocol| {
            let pair = Pair::new(stage, Role::Client, protocol, Feature::Redirect, 0);
            let server = pair.serve(stage)?;
            fails_check(stage, &pair, server.port, &[ErrorKind::Status])
        }));
    }
    if protocol.is_grpc() {
        cases.push(case("a `grpc-status` that is not 0 is `status`", |stage, protocol| {
            let mut pair = Pair::new(stage, Role::Client, protocol, Feature::Heron, 0);
            pair.client.request.path = heron::path(-1.0);
            let server = pair.serve(stage)?;
            fails_check(stage, &pair, server.port, &[ErrorKind::Status])
        }));
    }
    if protocol.is_secure() {
        cases.push(case("a certificate of an authority that is not trusted is `certificate`", |stage, protocol| {
            let mut pair = Pair::simple(stage, Role::Client, protocol)?;
            if let Some(tls) = &mut pair.client.tls {
                tls.trust_anchor = Some(stage.material.stranger.clone());
            }
            let server = pair.serve(stage)?;
            fails_check(stage, &pair, server.port, &[ErrorKind::Certificate])
        }));
        cases.push(case("a certificate for another name is `certificate`", |stage, protocol| {
            let mut pair = Pair::simple(stage, Role::Client, protocol)?;
            pair.client.server_name = "other.wirelab.test".to_owned();
            let server = pair.serve(stage)?;
            fails_check(stage, &pair, server.port, &[ErrorKind::Certificate])
        }));
    }
    cases.extend(by_hostile_servers(protocol));
    cases
}

fn by_hostile_servers(protocol: Protocol) -> Vec<Case> {
    if protocol == Protocol::Udp {
        // Bare datagrams have no end and no reset; the case of silence is above.
        return Vec::new();
    }
    let mut cases = vec![
        (Fault::Truncate, "a body that ends too early is `truncated`", &[ErrorKind::Truncated][..]),
        (Fault::Reset, "a reset within the body is `reset`", &[ErrorKind::Reset]),
        (Fault::Silent, "a deadline that passes in the window is `timeout`", &[ErrorKind::Timeout]),
    ];
    if framed(protocol) {
        cases.push((Fault::Status, "an unexpected status in the window is `status`", &[ErrorKind::Status]));
    }
    if protocol.is_secure() {
        cases.push((Fault::NoAlpn, "a handshake without ALPN is `protocol`", &[ErrorKind::Protocol]));
        cases.push((
            Fault::Nonsense,
            "nonsense in place of a handshake is `tls`",
            &[ErrorKind::Tls, ErrorKind::Protocol],
        ));
    } else if framed(protocol) {
        cases.push((Fault::Nonsense, "nonsense in place of a response is `protocol`", &[ErrorKind::Protocol]));
    }
    cases
        .into_iter()
        .map(|(fault, name, kinds)| {
            Case::new(Role::Client, protocol, name, move |stage| against(stage, protocol, fault, kinds))
        })
        .collect()
}

/// Demands that the check request ends in `error` of one of these kinds, and status 1.
pub fn fails_check(stage: &Stage, pair: &Pair, port: u16, kinds: &[ErrorKind]) -> Finding {
    let spec = ClientSpec { port, ..pair.client.clone() };
    match run(stage, &stage.subject, &spec)? {
        Answer::Error(kind, _) if kinds.contains(&kind) => Ok(()),
        other => Err(Stop::broken(format!("expected `error` of kind {}; {}", tokens(kinds), other.describe()))),
    }
}

fn tokens(kinds: &[ErrorKind]) -> String {
    kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(" or ")
}

/// Demands that both requests of the window failed with one of these kinds.
pub fn all_failed(samples: &[Sample], kinds: &[ErrorKind]) -> Finding {
    demand(samples.len() == 2, || format!("expected 2 records; there are {}", samples.len()))?;
    demand(samples.iter().all(|sample| sample.error.is_some_and(|kind| kinds.contains(&kind))), || {
        format!("expected records with error {}; they are {samples:?}", tokens(kinds))
    })
}

/// The hostile server answers the check request correctly, if the fault allows it, and misbehaves on every request of
/// the window.
fn against(stage: &Stage, protocol: Protocol, fault: Fault, kinds: &[ErrorKind]) -> Finding {
    if !hostile::has_server_of(protocol) {
        return Err(Stop::skip(format!(
            "the suite has no hostile server of {protocol}, which would need a QUIC stack that can misbehave"
        )));
    }
    let abilities = stage.subject.abilities(Role::Client);
    let can = |feature| abilities.is_some_and(|abilities| abilities.features.contains(&feature));
    let features = match protocol {
        _ if protocol.is_http() => &[Feature::Bytes, Feature::Files][..],
        _ if protocol.is_grpc() => &[Feature::Heron],
        _ => &[Feature::Echo],
    };
    let feature = features.iter().copied().find(|feature| can(*feature));
    let feature = feature.ok_or_else(|| Stop::skip("it declares no feature that the hostile server can answer"))?;
    let pair = || {
        let mut pair = Pair::new(stage, Role::Client, protocol, feature, hostile::BODY);
        pair.client.extent = Extent::Requests(2);
        pair
    };
    let start =
        |good| Hostile::start(protocol, fault, good, &stage.material).map_err(|error| Stop::skip(error.to_string()));
    match fault {
        Fault::NoAlpn => {
            let peer = start(0)?;
            fails_check(stage, &pair(), peer.port, kinds)
        }
        Fault::Silent => in_time(|deadline_ns| {
            let mut pair = pair();
            pair.client.timeouts = both(deadline_ns);
            let peer = start(1)?;
            match records(stage, &pair, peer.port, || {})? {
                Ok(samples) => all_failed(&samples, kinds).map(|()| Try::Right),
                Err(NotInTime(why)) => Ok(Try::TooShort(why)),
            }
        }),
        _ => {
            let peer = start(1)?;
            let trial = pair().run_against(stage, peer.port, Default::default(), || {})?;
            verify::counts(&trial.run, &trial.samples)?;
            all_failed(&trial.samples, kinds)
        }
    }
}
