//! What goes wrong must be reported as what it is: in the `error` of the check request, or in the records.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use wirelab_lab::Role;
use wirelab_model::heron;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ClientSpec, Expect, Extent, Feature, Timeouts};

use crate::case::Case;
use crate::conversation::{Answer, run, samples};
use crate::finding::{Finding, Stop, demand};
use crate::hostile::{self, Evil, Hostile};
use crate::pair::{LOCALHOST, Pair, can_both, sha256};
use crate::stage::Stage;
use crate::verify;

/// Deadlines of the cases in which one has to pass, in nanoseconds.
const SHORT_NS: u64 = 400_000_000;

/// What the response to the check request is made to differ in.
struct Wrong {
    name: &'static str,
    kinds: &'static [ErrorKind],
    /// Whether a protocol can tell.
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

/// Whether a response has a size of its own, whatever the client wanted.
const fn framed(protocol: Protocol) -> bool {
    protocol.is_http() || protocol.is_grpc()
}

/// The cases of a client with a protocol.
pub fn cases(protocol: Protocol) -> Vec<Case> {
    let case = |name: &str, run: fn(&Stage, Protocol) -> Finding| {
        Case::new(Role::Client, protocol, name, move |stage| run(stage, protocol))
    };
    let mut cases = vec![
        case("a port where nobody listens is `refused`", refused),
        case("a server that never answers is a passed deadline", silent),
        case("a server that is killed in the window is reported in the records", killed),
        case("connections take the addresses of a name in turn", in_turn),
    ];
    cases.extend(WRONG.iter().filter(|wrong| (wrong.shows)(protocol)).map(|wrong| {
        Case::new(Role::Client, protocol, wrong.name, move |stage| {
            let mut pair = Pair::simple(stage, Role::Client, protocol)?;
            pair.client.request.expect.as_mut().map(wrong.change);
            let server = pair.serve(stage)?;
            fails_check(stage, &pair, server.port, wrong.kinds)
        })
    }));
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
        // Bare datagrams have no end and no reset; what is left is silence, which is above.
        return Vec::new();
    }
    let mut evils = vec![
        (Evil::Truncate, "a body that ends too early is `truncated`", &[ErrorKind::Truncated][..]),
        (Evil::Reset, "a reset within the body is `reset`", &[ErrorKind::Reset]),
        (Evil::Silent, "a deadline that passes in the window is `timeout`", &[ErrorKind::Timeout]),
    ];
    if framed(protocol) {
        evils.push((Evil::Status, "an unexpected status in the window is `status`", &[ErrorKind::Status]));
    }
    if protocol.is_secure() {
        evils.push((Evil::NoAlpn, "a handshake without ALPN is `protocol`", &[ErrorKind::Protocol]));
        evils.push((
            Evil::Nonsense,
            "nonsense in place of a handshake is `tls`",
            &[ErrorKind::Tls, ErrorKind::Protocol],
        ));
    } else if framed(protocol) {
        evils.push((Evil::Nonsense, "nonsense in place of a response is `protocol`", &[ErrorKind::Protocol]));
    }
    evils
        .into_iter()
        .map(|(evil, name, kinds)| {
            Case::new(Role::Client, protocol, name, move |stage| against(stage, protocol, evil, kinds))
        })
        .collect()
}

/// The check request must end in `error` of one of these kinds, and status 1.
fn fails_check(stage: &Stage, pair: &Pair, port: u16, kinds: &[ErrorKind]) -> Finding {
    let spec = ClientSpec { port, ..pair.client.clone() };
    match run(stage, &stage.subject, &spec)? {
        Answer::Error(kind, _) if kinds.contains(&kind) => Ok(()),
        other => Err(Stop::broken(format!("expected `error` of kind {}; {}", tokens(kinds), other.words()))),
    }
}

fn tokens(kinds: &[ErrorKind]) -> String {
    kinds.iter().map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(" or ")
}

fn no_port(error: &dyn std::fmt::Display) -> Stop {
    Stop::skip(format!("the suite cannot bind a port: {error}"))
}

/// A port that was free a moment ago. QUIC libraries that use unconnected sockets do not hear of ICMP.
fn refused(stage: &Stage, protocol: Protocol) -> Finding {
    let port = if protocol.uses_udp() {
        UdpSocket::bind(SocketAddr::new(LOCALHOST, 0)).and_then(|socket| socket.local_addr())
    } else {
        TcpListener::bind(SocketAddr::new(LOCALHOST, 0)).and_then(|socket| socket.local_addr())
    };
    let port = port.map_err(|error| no_port(&error))?.port();
    let mut pair = Pair::simple(stage, Role::Client, protocol)?;
    pair.client.timeouts = Timeouts { connect_ns: SHORT_NS, request_ns: SHORT_NS };
    let kinds: &[ErrorKind] =
        if protocol.uses_quic() { &[ErrorKind::Refused, ErrorKind::Timeout] } else { &[ErrorKind::Refused] };
    fails_check(stage, &pair, port, kinds)
}

/// Of the two addresses of the name only the first has a server: the check request meets it, and then every second request.
fn in_turn(stage: &Stage, protocol: Protocol) -> Finding {
    let mut pair = Pair::simple(stage, Role::Client, protocol)?;
    pair.client.addresses = vec![LOCALHOST, IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))];
    pair.client.timeouts = Timeouts { connect_ns: SHORT_NS, request_ns: SHORT_NS };
    let server = pair.serve(stage)?;
    let spec = ClientSpec { port: server.port, ..pair.client.clone() };
    match run(stage, &stage.subject, &spec)? {
        Answer::Went(_) => {}
        Answer::Unsupported(why) => return Err(Stop::skip(format!("not supported: {why}"))),
        other => return Err(Stop::broken(format!("expected `done`; {}", other.words()))),
    }
    server.stop(true)?;
    let failed: Vec<_> = samples(&spec.results)?.iter().map(|sample| sample.error.is_some()).collect();
    demand(failed == [true, false, true, false, true], || {
        format!("the requests of connections 1 to 5 should fail at every second address; failed: {failed:?}")
    })
}

/// A socket that takes everything and answers nothing.
fn silent(stage: &Stage, protocol: Protocol) -> Finding {
    let mut pair = Pair::simple(stage, Role::Client, protocol)?;
    pair.client.timeouts = Timeouts { connect_ns: SHORT_NS, request_ns: SHORT_NS };
    let address = SocketAddr::new(LOCALHOST, 0);
    if protocol.uses_udp() {
        let hole = UdpSocket::bind(address).map_err(|error| no_port(&error))?;
        let port = hole.local_addr().map_err(|error| no_port(&error))?.port();
        let kind = if protocol == Protocol::Udp { ErrorKind::Lost } else { ErrorKind::Timeout };
        fails_check(stage, &pair, port, &[kind])
    } else {
        let listener = TcpListener::bind(address).map_err(|error| no_port(&error))?;
        let port = listener.local_addr().map_err(|error| no_port(&error))?.port();
        fails_check(stage, &pair, port, &[ErrorKind::Timeout])
    }
}

/// Every answer takes longer than the time between the second `go` and SIGKILL, so the first request cannot succeed.
fn killed(stage: &Stage, protocol: Protocol) -> Finding {
    const DELAY_US: u64 = 500_000;
    if !can_both(stage, Role::Client, protocol, Feature::Delay) {
        return Err(Stop::skip(
            "the two endpoints do not have `delay` in common, without which the moment is a matter of luck",
        ));
    }
    let size = if protocol.is_http() { 0 } else { hostile::BODY };
    let mut pair = Pair::new(stage, Role::Client, protocol, Feature::Delay, size).persistent(1, 1);
    pair.client.request.path = format!("/delay/{DELAY_US}");
    pair.client.timeouts = Timeouts { connect_ns: 1_000_000_000, request_ns: 2 * DELAY_US * 1_000 };
    pair.client.extent = Extent::Requests(2);
    let server = pair.serve(stage)?;
    let port = server.port;
    let trial = pair.run_against(stage, port, server.configured.clone(), || server.kill())?;
    let kinds: &[ErrorKind] = match protocol {
        Protocol::Udp => &[ErrorKind::Lost, ErrorKind::Refused],
        Protocol::Quic | Protocol::H3 => &[ErrorKind::Timeout, ErrorKind::Refused, ErrorKind::Reset],
        _ => &[ErrorKind::Reset, ErrorKind::Truncated, ErrorKind::Refused],
    };
    verify::counts(&trial.run, &trial.samples)?;
    demand(trial.samples.len() == 2, || format!("expected 2 records; there are {}", trial.samples.len()))?;
    demand(trial.samples.iter().all(|sample| sample.error.is_some_and(|kind| kinds.contains(&kind))), || {
        format!("expected records with error {}; they are {:?}", tokens(kinds), trial.samples)
    })
}

/// The check request is answered as it should be, where the evil allows it; every request of the window is not.
fn against(stage: &Stage, protocol: Protocol, evil: Evil, kinds: &[ErrorKind]) -> Finding {
    if !hostile::plays(protocol) {
        return Err(Stop::skip(format!(
            "the suite plays no hostile server of {protocol}: it would need a QUIC stack that can misbehave"
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
    let mut pair = Pair::new(stage, Role::Client, protocol, feature, hostile::BODY);
    pair.client.extent = Extent::Requests(2);
    if evil == Evil::Silent {
        pair.client.timeouts = Timeouts { connect_ns: SHORT_NS, request_ns: SHORT_NS };
    }
    let good = u32::from(evil != Evil::NoAlpn);
    let peer = Hostile::start(protocol, evil, good, &stage.material).map_err(Stop::skip)?;
    if evil == Evil::NoAlpn {
        return fails_check(stage, &pair, peer.port, kinds);
    }
    let trial = pair.run_against(stage, peer.port, Default::default(), || {})?;
    verify::counts(&trial.run, &trial.samples)?;
    demand(trial.samples.len() == 2, || format!("expected 2 records; there are {}", trial.samples.len()))?;
    demand(trial.samples.iter().all(|sample| sample.error.is_some_and(|kind| kinds.contains(&kind))), || {
        format!("expected records with error {}; they are {:?}", tokens(kinds), trial.samples)
    })
}
