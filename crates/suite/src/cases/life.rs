//! Cases of the start and the end of servers and clients.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use wirelab_lab::Role;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ClientSpec, Extent, ServerSpec};

use crate::case::Case;
use crate::conversation::{Answer, Server, json, warm_client};
use crate::finding::{Finding, Stop, demand};
use crate::pair::{LOCALHOST, Pair};
use crate::stage::Stage;

/// The cases of a server.
pub fn of_servers(protocol: Protocol) -> Vec<Case> {
    let case = |name: &str, run: fn(&Stage, Protocol) -> Finding| {
        Case::new(Role::Server, protocol, name, move |stage| run(stage, protocol))
    };
    let mut cases = vec![
        case("`ready` means that its port accepts", accepts),
        case("a port in use is an error (1)", port_in_use),
        case("it ends cleanly at the end of its input", |stage, protocol| idle_stop(stage, protocol, false)),
        case("it ends cleanly on `stop`", |stage, protocol| idle_stop(stage, protocol, true)),
        case("it ends cleanly while a connection is open", busy_stop),
        case("`counts`: it reports the number of answered requests, or refuses", counts),
    ];
    if !protocol.uses_udp() {
        cases.push(case("it survives nonsense and an aborted connection", nonsense));
    }
    cases
}

/// The cases of a client.
pub fn of_clients(protocol: Protocol) -> Vec<Case> {
    [("`stop`", true), ("the end of its input", false)]
        .into_iter()
        .map(|(word, by_word)| {
            Case::new(Role::Client, protocol, format!("it aborts on {word}"), move |stage| {
                let pair = Pair::simple(stage, Role::Client, protocol)?.persistent(1, 1);
                let server = pair.serve(stage)?;
                let spec = ClientSpec { port: server.port, ..pair.client.clone() };
                let client = pair.accepted(Role::Client, warm_client(stage, &stage.subject, &json(&spec))?)?;
                client.give_up(by_word)
            })
        })
        .collect()
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::new(LOCALHOST, port)
}

fn accepts(stage: &Stage, protocol: Protocol) -> Finding {
    let server = serve(stage, protocol)?;
    if protocol.uses_udp() {
        // A UDP port answers only its own protocol, but no other process can bind it.
        let bound = UdpSocket::bind(address(server.port)).is_err();
        demand(bound, || format!("expected UDP port {} to be bound; it is free", server.port))?;
    } else {
        TcpStream::connect(address(server.port)).map_err(|error| {
            Stop::broken(format!("expected TCP port {} to accept after `ready`; {error}", server.port))
        })?;
    }
    server.stop(true).map(drop)
}

fn port_in_use(stage: &Stage, protocol: Protocol) -> Finding {
    let failed = |error| Stop::skip(format!("the suite cannot bind a port: {error}"));
    let tcp = TcpListener::bind(address(0)).map_err(failed)?;
    let udp = UdpSocket::bind(address(0)).map_err(failed)?;
    let taken = if protocol.uses_udp() { udp.local_addr() } else { tcp.local_addr() }.map_err(failed)?;
    let pair = Pair::simple(stage, Role::Server, protocol)?;
    let spec = ServerSpec { port: taken.port(), ..pair.server };
    match Server::start(stage, &stage.subject, &json(&spec))? {
        Answer::Error(ErrorKind::Other, _) => Ok(()),
        other => Err(Stop::broken(format!("expected `error` of kind `other` for a port in use; {}", other.describe()))),
    }
}

fn idle_stop(stage: &Stage, protocol: Protocol, by_word: bool) -> Finding {
    serve(stage, protocol)?.stop(by_word).map(drop)
}

fn busy_stop(stage: &Stage, protocol: Protocol) -> Finding {
    let pair = Pair::simple(stage, Role::Server, protocol)?.persistent(1, 1);
    let server = pair.serve(stage)?;
    let spec = ClientSpec { port: server.port, ..pair.client.clone() };
    let _open = pair.accepted(Role::Client, warm_client(stage, &stage.reference, &json(&spec))?)?;
    server.stop(true).map(drop)
}

fn counts(stage: &Stage, protocol: Protocol) -> Finding {
    let mut pair = Pair::simple(stage, Role::Server, protocol)?.optional();
    pair.server.counts = true;
    let mut server = pair.serve(stage)?;
    let before = server.count()?;
    let trial = pair.run_against(stage, server.port, server.configured.clone(), || {})?;
    let warm_up = match pair.client.warm_up {
        Some(Extent::Requests(requests)) => requests,
        Some(Extent::DurationNs(_)) => {
            return Err(Stop::skip("the number of requests of a warm-up by time is unknown"));
        }
        None => 0,
    };
    let (answered, sent) = (server.count()?, 1 + warm_up + trial.samples.len() as u64);
    demand((before, answered) == (0, sent), || {
        format!(
            "expected 0 requests before and {sent} after them, the check request among them; {before} and {answered}"
        )
    })?;
    server.stop(true).map(drop)
}

fn nonsense(stage: &Stage, protocol: Protocol) -> Finding {
    let pair = Pair::simple(stage, Role::Server, protocol)?;
    let server = pair.serve(stage)?;
    for bytes in [&b"\0\xff nonsense \r\n\r\n"[..], b"GET /half", b""] {
        // The server may close at any time, so writing may fail.
        let _ = TcpStream::connect(address(server.port)).and_then(|mut stream| stream.write_all(bytes));
    }
    let trial = pair.run_against(stage, server.port, server.configured.clone(), || {})?;
    demand(trial.samples.iter().all(|sample| sample.is_ok()), || {
        format!("expected requests to succeed after nonsense on other connections; {:?}", trial.run.errors)
    })?;
    server.stop(true).map(drop)
}

fn serve<'a>(stage: &'a Stage, protocol: Protocol) -> Finding<Server<'a>> {
    Pair::simple(stage, Role::Server, protocol)?.serve(stage)
}
