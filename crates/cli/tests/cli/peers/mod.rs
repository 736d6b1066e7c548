//! Scripted servers: each `[[peer]]` of `tests/peers/*.toml` is a server that answers in an unusual or a wrong way,
//! with what wirelab must make of it. `tests/peers/README.md` documents the format.
//!
//! Every peer meets both clients of `wirelab load`, and the request that `load` and `probe` send before they measure.

mod clients;
mod h2spec;
mod http1;
mod http2;
mod http3;
mod proxies;
pub(crate) mod quic;
mod script;
mod server;
mod ssh;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_testkit::servers::Place;
use wirelab_testkit::{Said, program, said};

use script::{Expected, Peer};
use server::Server;

/// The clients of `wirelab load`.
const CLIENTS: [&str; 2] = ["engine", "builtin"];

/// Requests of a load. The second one shows what the first left on the connection.
const REQUESTS: u64 = 2;

/// Address space of the program in KiB: a server must not make it grow.
const MEMORY: u64 = 1 << 20;

/// Seconds after which a load is killed, far above what it needs on a busy machine.
const LIMIT: u64 = 120;

/// Peers at the same time. Most of them wait for each other's time-outs.
const AT_ONCE: usize = 6;

/// Runs all peers of a file against the program.
#[track_caller]
fn meet(file: &str) {
    let peers = script::read(file);
    let place = Place::new();
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(peer) = peers.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = faults(peer, &place);
                    wrong.lock().unwrap().extend(found.into_iter().map(|fault| format!("{}: {fault}", peer.name)));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} peers of {file}:\n{}", wrong.len(), peers.len(), wrong.join("\n"));
}

/// The deviations from the script.
fn faults(peer: &Peer, place: &Place) -> Vec<String> {
    let mut faults = Vec::new();
    // Before calls of gRPC, `load` sends no request, and the built-in endpoint makes no calls of users.
    let (clients, good) = if peer.protocol.is_grpc() { (&CLIENTS[..1], 0) } else { (&CLIENTS[..], 1) };
    let limit = |client: &str| match &peer.limit {
        // The request before the load is sent by the built-in client, too.
        Some(limit) if client == "builtin" => limit.as_str(),
        _ => peer.expected.limit(),
    };
    for client in clients {
        // A server that answers the request before the load well, so that the client meets the script.
        let server = Server::start(peer, place, good);
        let said = load(peer, place, client, limit(client), server.port);
        check(&mut faults, client, || match &peer.lenient {
            // Its library decides, but not how long it takes.
            Some(_) if *client == "builtin" && matches!(said.status, 0 | 1) => Ok(()),
            _ => peer.expected.of_load(peer, &said),
        });
    }
    if good > 0 {
        let server = Server::start(peer, place, 0);
        let said = load(peer, place, "engine", limit("builtin"), server.port);
        check(&mut faults, "the first request", || peer.expected.of_first(peer, &said));
    }
    faults
}

fn check(faults: &mut Vec<String>, who: &str, outcome: impl FnOnce() -> Result<(), String>) {
    faults.extend(outcome().err().map(|fault| format!("{who}: {fault}")));
}

/// `wirelab load` against a server at a port, with little memory.
fn load(peer: &Peer, place: &Place, client: &str, limit: &str, port: u16) -> Said {
    let path = if peer.protocol.is_grpc() { "test.Service/Method" } else { "" };
    let scheme = if peer.protocol.is_secure() { "https" } else { "http" };
    let url = format!("{scheme}://localhost:{port}/{path}");
    let requests = REQUESTS.to_string();
    let mut command = limited(place.folder());
    command.args(["load", &url, "-p", peer.protocol.token(), "--client", client, "-n", &requests, "--json"]);
    command.args(["--connect-timeout", "60s", "--timeout", limit]).args(&peer.args);
    if peer.protocol.is_secure() {
        command.args(["--ca", "ca.pem"]);
    }
    said(command.output().unwrap())
}

/// The program in a folder, with little memory and time.
fn limited(folder: &Path) -> Command {
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("ulimit -v {MEMORY} && exec timeout {LIMIT} \"$@\"")).arg("sh").arg(program());
    command.current_dir(folder).stdin(Stdio::null()).env("NO_COLOR", "1");
    command
}

impl Expected {
    /// Compares a load with what was expected of it.
    fn of_load(&self, peer: &Peer, said: &Said) -> Result<(), String> {
        let Ok(found) = serde_json::from_str::<Value>(&said.out) else {
            // A load that could not begin has no result.
            return self.of_first(peer, said);
        };
        let (succeeded, errors) = (&found["requests"], &found["errors"]);
        let first = found["first_failure"].as_str().unwrap_or_default();
        match self {
            Self::Answer { bytes, connections } => {
                let of = &found["histograms"];
                let expected = (REQUESTS, bytes * REQUESTS, *connections);
                let number = |value: &Value| value.as_u64().unwrap_or(u64::MAX - 1);
                // The first connection is opened before the window, in which those of the results are counted.
                let is = (number(succeeded), number(&of["bytes_in"]), 1 + number(&of["connections"]));
                match is == expected {
                    true => Ok(()),
                    false => Err(format!("(requests, bytes, connections) {is:?}, not {expected:?}: {errors} {first}")),
                }
            }
            Self::Failure { kind, says, succeed, connections } => {
                let failed = REQUESTS - succeed;
                let of = |kind: ErrorKind| errors[kind.token()].as_u64().unwrap_or(0);
                // A connection that ends early may end with a reset.
                let resets = if *kind == ErrorKind::Truncated { of(ErrorKind::Reset) } else { 0 };
                if *succeeded != *succeed || of(*kind) + resets != failed {
                    return Err(format!("{succeeded} succeeded, errors {errors} ({first}); expected {kind}"));
                }
                // The first connection is opened before the window.
                let opened = 1 + found["histograms"]["connections"].as_u64().unwrap_or(0);
                if connections.is_some_and(|expected| expected != opened) {
                    return Err(format!("{opened} connections, not {connections:?}"));
                }
                match first.contains(says.as_str()) {
                    true => Ok(()),
                    false => Err(format!("`{says}` is missing in `{first}` ({})", peer.rule)),
                }
            }
        }
    }

    /// Compares a load whose first request already met the script.
    fn of_first(&self, peer: &Peer, said: &Said) -> Result<(), String> {
        match self {
            Self::Answer { .. } if peer.first.as_ref().is_some_and(|words| said.err.contains(words)) => Ok(()),
            Self::Answer { .. } if said.out.is_empty() => Err(said.err.clone()),
            Self::Answer { .. } => self.of_load(peer, said),
            Self::Failure { says, succeed, .. } => {
                let status = if *succeed > 0 { 0 } else { 1 };
                let says = peer.first.as_ref().unwrap_or(says);
                match said.status == status && (said.err.contains(says.as_str()) || said.out.contains(says.as_str())) {
                    true => Ok(()),
                    false => Err(format!("status {}, `{says}` expected in: {}", said.status, said.err)),
                }
            }
        }
    }
}

#[test]
fn correct_and_unusual_servers_of_http1_are_measured() {
    meet("http1-correct.toml");
}

#[test]
fn broken_servers_of_http1_fail_requests_with_the_right_cause() {
    meet("http1-broken.toml");
}

#[test]
fn correct_and_unusual_servers_of_http2_are_measured() {
    meet("http2-correct.toml");
}

#[test]
fn broken_servers_of_http2_fail_requests_with_the_right_cause() {
    meet("http2-broken.toml");
}

#[test]
fn servers_of_grpc_are_measured_or_fail_calls_with_the_right_cause() {
    meet("grpc.toml");
}

#[test]
fn servers_of_http1_within_tls_are_measured_or_fail_requests_with_the_right_cause() {
    meet("http1-tls.toml");
}

#[test]
fn servers_of_http2_within_tls_are_measured_or_fail_requests_with_the_right_cause() {
    meet("http2-tls.toml");
}

#[test]
fn servers_of_http3_are_measured_or_fail_requests_with_the_right_cause() {
    meet("http3.toml");
}
