//! Cases in which a deadline expires. Deadlines must be short, or the suite would take hours. But the steps before the
//! expiry must be in time, and the first request of a just-in-time compiled runtime on a busy machine can take long.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};

use wirelab_lab::Role;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{ClientSpec, Extent, Feature, Timeouts};

use crate::case::Case;
use crate::conversation::{Answer, json, run_client, samples};
use crate::finding::{Finding, Stop};
use crate::hostile;
use crate::pair::{LOCALHOST, Pair, can_both};
use crate::stage::Stage;
use crate::verify;

use super::faults::{all_failed, fails_check};

/// Deadlines in nanoseconds. A case takes the first one that is long enough for the steps before the expiry. Four times
/// the last one is still within the limit of a step.
const DEADLINES_NS: [u64; 3] = [400_000_000, 2_000_000_000, 10_000_000_000];

/// Result of one attempt with one deadline, if the endpoint kept the contract.
pub enum Try {
    /// The case passes.
    Right,
    /// Inconclusive: the deadline expired, or something else happened, too early.
    TooShort(String),
}

/// Runs a case with increasing deadlines until the result is conclusive. An endpoint that exceeds the last deadline in
/// a step that should succeed breaks the contract.
pub fn in_time(mut attempt: impl FnMut(u64) -> Finding<Try>) -> Finding {
    let mut last = String::new();
    for deadline_ns in DEADLINES_NS {
        match attempt(deadline_ns)? {
            Try::Right => return Ok(()),
            Try::TooShort(why) => last = format!("{why} (with {} ms)", deadline_ns / 1_000_000),
        }
    }
    Err(Stop::broken(last))
}

/// The same deadline for connecting and for requests.
pub const fn both(deadline_ns: u64) -> Timeouts {
    Timeouts { connect_ns: deadline_ns, request_ns: deadline_ns }
}

/// The check request was not in time: the sentence about it.
pub struct NotInTime(pub String);

/// Runs the client under test.
pub fn records(
    stage: &Stage,
    pair: &Pair,
    port: u16,
    in_window: impl FnOnce(),
) -> Finding<Result<Vec<Sample>, NotInTime>> {
    let spec = ClientSpec { port, ..pair.client.clone() };
    let run = match run_client(stage, &stage.subject, &json(&spec), in_window)? {
        Answer::Error(kind @ (ErrorKind::Timeout | ErrorKind::Lost), message) => {
            let reason = format!("expected the check request to succeed; it ended with `{kind}`: {message}");
            return Ok(Err(NotInTime(reason)));
        }
        other => pair.accepted(Role::Client, other)?,
    };
    let samples = samples(&spec.results)?;
    verify::counts(&run, &samples)?;
    Ok(Ok(samples))
}

/// The cases of a client with a protocol.
pub fn cases(protocol: Protocol) -> Vec<Case> {
    let case = |name: &str, run: fn(&Stage, Protocol) -> Finding| {
        Case::new(Role::Client, protocol, name, move |stage| run(stage, protocol))
    };
    vec![
        case("a port without a listener is `refused`", refused),
        case("a server that never answers is a passed deadline", silent),
        case("a server that is killed in the window is reported in the records", killed),
        case("connections take the addresses of a name in turn", in_turn),
    ]
}

fn no_port(error: &dyn std::fmt::Display) -> Stop {
    Stop::skip(format!("the suite cannot bind a port: {error}"))
}

/// Uses a port that was free just before. QUIC libraries with unconnected sockets get no ICMP errors; for them the
/// deadline expires, and must be short.
fn refused(stage: &Stage, protocol: Protocol) -> Finding {
    let port = if protocol.uses_udp() {
        UdpSocket::bind(SocketAddr::new(LOCALHOST, 0)).and_then(|socket| socket.local_addr())
    } else {
        TcpListener::bind(SocketAddr::new(LOCALHOST, 0)).and_then(|socket| socket.local_addr())
    };
    let port = port.map_err(|error| no_port(&error))?.port();
    let mut pair = Pair::simple(stage, Role::Client, protocol)?;
    if protocol.uses_quic() {
        pair.client.timeouts = both(DEADLINES_NS[0]);
        return fails_check(stage, &pair, port, &[ErrorKind::Refused, ErrorKind::Timeout]);
    }
    fails_check(stage, &pair, port, &[ErrorKind::Refused])
}

/// Uses a socket that accepts everything and answers nothing. No step must succeed, so the shortest deadline is long
/// enough.
fn silent(stage: &Stage, protocol: Protocol) -> Finding {
    let mut pair = Pair::simple(stage, Role::Client, protocol)?;
    pair.client.timeouts = both(DEADLINES_NS[0]);
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

/// Only the first of the name's two addresses has a server: it answers the check request, and then every second
/// request.
fn in_turn(stage: &Stage, protocol: Protocol) -> Finding {
    in_time(|deadline_ns| {
        let mut pair = Pair::simple(stage, Role::Client, protocol)?.optional();
        pair.client.addresses = vec![LOCALHOST, IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2))];
        pair.client.timeouts = both(deadline_ns);
        let server = pair.serve(stage)?;
        let samples = match records(stage, &pair, server.port, || {})? {
            Ok(samples) => samples,
            Err(NotInTime(why)) => return Ok(Try::TooShort(why)),
        };
        server.stop(true)?;
        let all: Vec<_> = samples.iter().map(|sample| sample.error).collect();
        // A deadline that expires at the address with a server says nothing about the order.
        let late =
            all.iter().skip(1).step_by(2).any(|error| matches!(error, Some(ErrorKind::Timeout | ErrorKind::Lost)));
        let failed: Vec<_> = all.iter().map(Option::is_some).collect();
        let wrong =
            || format!("the requests of connections 1 to 5 should fail at every second address; errors: {all:?}");
        match failed == [true, false, true, false, true] {
            true => Ok(Try::Right),
            false if late => Ok(Try::TooShort(wrong())),
            false => Err(Stop::broken(wrong())),
        }
    })
}

/// Every answer takes longer than the time from the second `go` to SIGKILL, so the first request cannot succeed.
fn killed(stage: &Stage, protocol: Protocol) -> Finding {
    if !can_both(stage, Role::Client, protocol, Feature::Delay) {
        return Err(Stop::skip(
            "the two endpoints do not have `delay` in common, without which the time of the kill is arbitrary",
        ));
    }
    let size = if protocol.is_http() { 0 } else { hostile::BODY };
    let kinds: &[ErrorKind] = match protocol {
        Protocol::Udp => &[ErrorKind::Lost, ErrorKind::Refused],
        Protocol::Quic | Protocol::H3 => &[ErrorKind::Timeout, ErrorKind::Refused, ErrorKind::Reset],
        _ => &[ErrorKind::Reset, ErrorKind::Truncated, ErrorKind::Refused],
    };
    in_time(|delay_ns| {
        let mut pair = Pair::new(stage, Role::Client, protocol, Feature::Delay, size).persistent(1, 1);
        pair.client.request.path = format!("/delay/{}", delay_ns / 1_000);
        if protocol.uses_udp() {
            // No message announces the end of the server, so the deadlines of two requests expire.
            pair.client.timeouts = both(2 * delay_ns);
        }
        pair.client.extent = Extent::Requests(2);
        let server = pair.serve(stage)?;
        let port = server.port;
        let samples = match records(stage, &pair, port, || server.kill())? {
            Ok(samples) => samples,
            Err(NotInTime(why)) => return Ok(Try::TooShort(why)),
        };
        if samples.first().is_some_and(Sample::is_ok) {
            return Ok(Try::TooShort("the answer was there before the server was killed".to_owned()));
        }
        all_failed(&samples, kinds).map(|()| Try::Right)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_tried_with_longer_deadlines_until_it_is_conclusive() {
        let mut tried = Vec::new();
        let found = in_time(|deadline| {
            tried.push(deadline);
            Ok(if tried.len() < 2 { Try::TooShort("too slow".to_owned()) } else { Try::Right })
        });
        assert_eq!((found, tried), (Ok(()), DEADLINES_NS[..2].to_vec()));
    }

    #[test]
    fn a_case_that_exceeds_every_deadline_is_broken() {
        let found = in_time(|_| Ok(Try::TooShort("the check request failed".to_owned())));
        assert_eq!(found, Err(Stop::broken("the check request failed (with 10000 ms)")));
    }

    #[test]
    fn a_broken_contract_is_not_tried_again() {
        let mut tried = 0;
        let found = in_time(|_| {
            tried += 1;
            Err(Stop::broken("the wrong kind"))
        });
        assert_eq!((found, tried), (Err(Stop::broken("the wrong kind")), 1));
    }
}
