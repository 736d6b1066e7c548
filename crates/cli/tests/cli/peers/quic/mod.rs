//! Real servers of QUIC behind paths with defects: each `[[case]]` of `tests/peers/quic.toml` has the settings of a
//! server, a script of the relay before it, and what wirelab must make of them. `tests/peers/README.md` documents the
//! format.
//!
//! `wirelab load` meets every case over HTTP/3 with both clients: each request has a body of its own, which must come
//! back. Both clients meet it over raw QUIC, too, by the contract of endpoints.

pub(crate) mod relay;
mod server;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde::Deserialize;
use serde_json::Value;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::pattern;
use wirelab_contract::spec::{Expect, Request};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{
    ClientSpec, ClientTls, ConnectionPolicy, Extent, Pause, Recording, Resumption, Schedule, Timeouts,
};
use wirelab_testkit::servers::Place;
use wirelab_testkit::{program, said};

use super::CLIENTS;
use super::script::parsed;
use relay::{Relay, Rule};
use server::{Server, Settings};

/// The test cases of quic-interop-runner.
const INTEROP: [&str; 25] = [
    "amplificationlimit",
    "blackhole",
    "chacha20",
    "connectionmigration",
    "crosstraffic",
    "ecn",
    "goodput",
    "handshake",
    "handshakecorruption",
    "handshakeloss",
    "http3",
    "ipv6",
    "keyupdate",
    "longrtt",
    "multiplexing",
    "rebind-addr",
    "rebind-port",
    "resumption",
    "retry",
    "transfer",
    "transfercorruption",
    "transferloss",
    "v2",
    "versionnegotiation",
    "zerortt",
];

/// Cases at the same time. Most of them wait for lost datagrams.
const AT_ONCE: usize = 12;

/// Requests with different bodies.
const DIFFERENT: usize = 3;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    case: Vec<Case>,
    /// Why a case of quic-interop-runner is missing.
    not: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    rule: String,
    /// The cases of quic-interop-runner that it covers.
    #[serde(default)]
    interop: Vec<String>,
    #[serde(default)]
    server: Settings,
    #[serde(default)]
    relay: Vec<String>,
    /// 0: a new connection for each request.
    #[serde(default = "one")]
    connections: u32,
    #[serde(default = "one")]
    streams: u32,
    #[serde(default = "eight")]
    requests: u64,
    /// Bytes of each request and each response.
    #[serde(default = "thousand")]
    size: usize,
    #[serde(default)]
    resumption: Resumption,
    /// The limit of a connection and of a request in milliseconds; by default one that no case reaches.
    #[serde(default = "minute")]
    limit: u64,
    #[serde(default)]
    ipv6: bool,
    /// Whether the case is one of HTTP/3 only.
    #[serde(default)]
    http3: bool,
    #[serde(default)]
    expect: Outcome,
    /// Why the built-in client is not held to the outcome.
    #[serde(default)]
    lenient: Option<String>,
}

fn one() -> u32 {
    1
}

fn eight() -> u64 {
    8
}

fn minute() -> u64 {
    60_000
}

fn thousand() -> usize {
    1000
}

/// The required outcome; without a kind of failure: all requests are answered.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct Outcome {
    fails: Option<ErrorKind>,
    /// Words of the failure.
    says: String,
    /// The number of requests that fail; absent: the first request of all, which ends the load.
    count: Option<u64>,
    /// The negotiated cipher suite.
    cipher: Option<String>,
}

/// The result of a load.
struct Found {
    succeeded: u64,
    errors: BTreeMap<String, u64>,
    /// Words of the first failure.
    first: String,
    configured: Value,
}

impl Case {
    /// The deviations from the script over a protocol.
    fn faults(&self, place: &Place, protocol: Protocol) -> Vec<String> {
        let mut faults = Vec::new();
        for client in CLIENTS {
            let (port, server) = self.serve(place, protocol, client);
            let found = match protocol {
                Protocol::H3 => self.load(place, client, port),
                _ => self.trial(place, client, port),
            };
            if let Err(fault) = self.compare(client, found, &server) {
                faults.push(format!("{client}, {protocol}: {fault}"));
            }
        }
        faults
    }

    fn host(&self) -> IpAddr {
        if self.ipv6 { Ipv6Addr::LOCALHOST.into() } else { Ipv4Addr::LOCALHOST.into() }
    }

    /// Starts the server and the relay on a thread, which ends with the test's process. Returns the relay's port.
    fn serve(&self, place: &Place, protocol: Protocol, client: &str) -> (u16, Arc<Server>) {
        let front = UdpSocket::bind((self.host(), 0)).unwrap();
        let port = front.local_addr().unwrap().port();
        // `load` sends each of the different requests once before, and then each client does. The built-in client has
        // one socket for all its connections.
        let before = if protocol == Protocol::H3 { DIFFERENT as u64 } else { 0 };
        let load = match client {
            "engine" => before + before.max(1) + 1,
            _ => before + 1,
        };
        let rules = self.relay.iter().map(|line| Rule::read(line, load)).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = {
            let _inside = runtime.enter();
            let server = Server::bind(&self.server, protocol, place, self.host());
            let other = Server::bind(&self.server, protocol, place, self.host());
            let relay = Relay::new(front, server.address(), other.address(), rules).unwrap();
            tokio::spawn(Arc::clone(&server).run());
            tokio::spawn(other.run());
            tokio::spawn(relay.run());
            server
        };
        std::thread::spawn(move || runtime.block_on(std::future::pending::<()>()));
        (port, server)
    }

    /// `wirelab load` over HTTP/3. Each request demands its own body back.
    fn load(&self, place: &Place, client: &str, port: u16) -> Result<Found, String> {
        let requests = place.path(&format!("requests-{port}.toml"));
        let written: String = (0..DIFFERENT)
            .map(|number| {
                let line = format!("this is the body of request {number}, ");
                let body: String = line.chars().cycle().take(self.size).collect();
                let expect = format!("expect = {{ size = {}, contains = '{body}' }}\n", self.size);
                format!("[[request]]\nname = '{number}'\nmethod = 'PUT'\nbody = '{body}'\n{expect}")
            })
            .collect();
        fs::write(&requests, written).unwrap();
        let mut command = Command::new(program());
        let host = if self.ipv6 { "[::1]" } else { "localhost" };
        command.args(["load", &format!("https://{host}:{port}/"), "--ca", "ca.pem", "-p", "h3", "--client", client]);
        command.arg("--request-file").arg(requests).args(["--json", "-n", &self.requests.to_string()]);
        let limit = format!("{}ms", self.limit);
        command.args(["--connect-timeout", &limit, "--timeout", &limit]);
        match (self.connections, self.streams.to_string()) {
            (0, streams) => command.args(["--new-connections", "-c", &streams]),
            (connections, streams) => command.args(["-c", &connections.to_string(), "-m", &streams]),
        };
        match self.resumption {
            Resumption::None => {}
            Resumption::Resume => drop(command.args(["--resumption", "resume"])),
            Resumption::ZeroRtt => drop(command.args(["--resumption", "zero-rtt"])),
        }
        command.current_dir(place.folder()).stdin(Stdio::null()).env("NO_COLOR", "1");
        let said = said(command.output().unwrap());
        let found: Value = serde_json::from_str(&said.out).map_err(|_| said.err)?;
        Ok(Found {
            succeeded: found["requests"].as_u64().unwrap(),
            errors: serde_json::from_value(found["errors"].clone()).unwrap(),
            first: found["first_failure"].as_str().unwrap_or_default().to_owned(),
            configured: found["configured"].clone(),
        })
    }

    /// A trial of an endpoint over raw QUIC.
    fn trial(&self, place: &Place, client: &str, port: u16) -> Result<Found, String> {
        let size = self.size as u64;
        let expect = Expect { status: 200, body_size: size, sha256: sha256(&pattern::body(self.size)) };
        let workers = self.connections.max(1) * self.streams;
        let spec = ClientSpec {
            address: self.host(),
            server_name: if self.ipv6 { "::1" } else { "localhost" }.to_owned(),
            tls: Some(ClientTls::trusting(place.path("ca.pem"))),
            request: Request { body_size: size, expect: Some(expect), ..Request::get("/") },
            connections: match self.connections {
                0 => ConnectionPolicy::PerRequest,
                connections => ConnectionPolicy::Persistent { connections, streams: self.streams },
            },
            schedule: Schedule::Closed { workers, pause: Pause::None },
            extent: Extent::Requests(self.requests),
            resumption: self.resumption,
            timeouts: Timeouts { connect_ns: self.limit * 1_000_000, request_ns: self.limit * 1_000_000 },
            recording: Recording::Samples,
            results: place.path(&format!("results-{port}.json")),
            threads: Some(1),
            ..ClientSpec::plain(Protocol::Quic, port)
        };
        let path = place.path(&format!("spec-{port}.json"));
        fs::write(&path, serde_json::to_string(&spec).unwrap()).unwrap();
        let mut command = Command::new(program());
        command.arg("endpoint").args((client == "engine").then_some("--engine"));
        command.args(["client", "--spec"]).arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (mut words, mut events) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut last = Value::Null;
        for word in [Some("go"), Some("go"), Some("finish"), None] {
            let mut line = String::new();
            events.read_line(&mut line).unwrap();
            last = serde_json::from_str(&line).unwrap_or_else(|error| panic!("`{line}`: {error}"));
            if last["event"] == "error" || last["event"] == "unsupported" {
                break;
            }
            if let Some(word) = word {
                writeln!(words, "{word}").unwrap();
            }
        }
        drop(words);
        child.wait().unwrap();
        if last["event"] != "done" {
            return Err(last.to_string());
        }
        Ok(Found {
            succeeded: last["requests"].as_u64().unwrap(),
            errors: serde_json::from_value(last["errors"].clone()).unwrap_or_default(),
            first: String::new(),
            configured: last["configured"].clone(),
        })
    }

    fn compare(&self, client: &str, found: Result<Found, String>, server: &Server) -> Result<(), String> {
        if client == "builtin" && self.lenient.is_some() {
            return Ok(());
        }
        let Outcome { fails, says, count, cipher } = &self.expect;
        let found = match (found, fails, count) {
            (Ok(found), ..) => found,
            (Err(said), Some(_), None) if said.contains(says.as_str()) => return Ok(()),
            (Err(said), ..) => return Err(said),
        };
        let failed = fails.map(|kind| (kind.token().to_owned(), count.unwrap_or(self.requests)));
        let expected = self.requests - count.unwrap_or(0);
        if found.succeeded != expected || found.errors != failed.into_iter().collect() {
            return Err(format!("{} succeeded, errors {:?} ({})", found.succeeded, found.errors, found.first));
        }
        if !found.first.contains(says.as_str()) && !found.first.is_empty() {
            return Err(format!("`{says}` is missing in `{}`", found.first));
        }
        if cipher.as_ref().is_some_and(|cipher| found.configured["cipher"] != **cipher) {
            return Err(format!("another cipher: {}", found.configured));
        }
        // Each request of its own goes before the load, too.
        let before = if server.protocol == Protocol::H3 { 2 * DIFFERENT as u64 } else { 1 };
        let answered = server.answered.load(Ordering::Relaxed);
        match fails.is_some() || answered == self.requests + before {
            true => Ok(()),
            false => Err(format!("the server answered {answered} requests ({})", self.rule)),
        }
    }
}

/// A digest in hexadecimal.
fn sha256(bytes: &[u8]) -> String {
    let suite = rustls::crypto::ring::cipher_suite::TLS13_AES_128_GCM_SHA256.tls13().unwrap();
    let digest = suite.common.hash_provider.hash(bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn loads_over_quic_survive_what_networks_and_servers_may_do_or_fail_with_the_right_cause() {
    let File { case: cases, .. } = parsed("quic.toml");
    let place = Place::new();
    place.certificate("v6", "::1", 2099);
    let over = |protocol| cases.iter().map(move |case| (case, protocol));
    let over_raw = over(Protocol::Quic).filter(|(case, _)| !case.http3);
    let mut all: Vec<_> = over(Protocol::H3).chain(over_raw).collect();
    // The slow ones first.
    all.sort_by_key(|(case, _)| case.relay.is_empty());
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some((case, protocol)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = case.faults(&place, *protocol);
                    wrong.lock().unwrap().extend(found.into_iter().map(|fault| format!("{}: {fault}", case.name)));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), all.len(), wrong.join("\n"));
}

#[test]
fn every_test_case_of_the_interop_runner_has_a_case_or_a_reason() {
    let File { case: cases, not } = parsed("quic.toml");
    for name in INTEROP {
        let is_covered = cases.iter().any(|case| case.interop.iter().any(|covered| covered == name));
        assert!(is_covered != not.contains_key(name), "{name} needs either a case or a reason");
    }
    let known = |name: &String| INTEROP.contains(&name.as_str());
    assert!(cases.iter().flat_map(|case| &case.interop).chain(not.keys()).all(known), "an unknown test case");
}
