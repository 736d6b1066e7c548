//! A server and a client with one kind of request: the specs, the run, and the checks of every run.

use std::net::{IpAddr, Ipv4Addr};

use wirelab_lab::Role;
use wirelab_model::event::Configured;
use wirelab_model::heron;
use wirelab_model::pattern;
use wirelab_model::protocol::Protocol;
use wirelab_model::sample::Sample;
use wirelab_model::spec::{
    ClientSpec, ClientTls, ConnectionPolicy, Expect, Extent, Feature, Pause, Recording, Request, Schedule, ServerSpec,
    ServerTls, Timeouts,
};

use crate::conversation::{Answer, Run, Server, json as as_json, run_client, samples};
use crate::finding::{Finding, Stop};
use crate::material::SERVER_NAME;
use crate::stage::{Party, Stage};
use crate::verify;

/// The address of every trial of the suite.
pub const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Delay of the server in requests of [`Feature::Delay`], in microseconds.
pub const DELAY_US: u64 = 20_000;

/// Deadline in nanoseconds that no request should reach, however busy the machine is.
const LONG_NS: u64 = 30_000_000_000;

/// Specs of both sides; the port is set when the server is ready.
#[derive(Debug, Clone)]
pub struct Pair {
    /// The role under test; the reference endpoint has the other role.
    pub subject: Role,
    /// The server's spec.
    pub server: ServerSpec,
    /// The client's spec.
    pub client: ClientSpec,
    /// Whether the endpoint under test may refuse the spec as `unsupported`.
    pub optional: bool,
}

/// The result of a pair.
#[derive(Debug)]
pub struct Trial {
    /// The client's report.
    pub run: Run,
    /// The client's records.
    pub samples: Vec<Sample>,
    /// The effective settings that the server reported.
    pub server: Configured,
}

impl Pair {
    /// Five sequential requests of a feature, each on a connection of its own. `size` is the size of the response body
    /// (for HTTP `echo` also of the request body), unless the feature determines it.
    pub fn new(stage: &Stage, subject: Role, protocol: Protocol, feature: Feature, size: usize) -> Self {
        let secure = protocol.is_secure();
        let material = &stage.material;
        let server = ServerSpec {
            server_name: SERVER_NAME.to_owned(),
            tls: secure.then(|| ServerTls {
                certificate: material.certificate.clone(),
                key: material.key.clone(),
                key_log: None,
                resumption: false,
                early_data: false,
            }),
            document_root: matches!(feature, Feature::Files | Feature::Pages).then(|| material.documents.clone()),
            features: vec![feature],
            ..ServerSpec::plain(protocol)
        };
        let client = ClientSpec {
            server_name: SERVER_NAME.to_owned(),
            tls: secure.then(|| ClientTls::trusting(material.authority.clone())),
            request: request(protocol, feature, size),
            extent: Extent::Requests(5),
            timeouts: Timeouts { connect_ns: LONG_NS, request_ns: LONG_NS },
            seed: 7,
            results: stage.fresh("results.jsonl"),
            ..ClientSpec::plain(protocol, 0)
        };
        Self { subject, server, client, optional: false }
    }

    /// A pair with small requests of a feature that both endpoints declare.
    pub fn simple(stage: &Stage, subject: Role, protocol: Protocol) -> Finding<Self> {
        let feature = common_feature(stage, subject, protocol)?;
        let empty = feature == Feature::Delay && protocol.is_http();
        Ok(Self::new(stage, subject, protocol, feature, if empty { 0 } else { 1_000 }))
    }

    /// Marks the pair as one that the endpoint under test may refuse.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Sets persistent connections and workers. The workers are divided among the connections as in a study.
    pub fn persistent(mut self, connections: u32, workers: u32) -> Self {
        let multiplexes = self.client.protocol.multiplexes();
        let streams = if multiplexes { workers.div_ceil(connections) } else { 1 };
        self.client.connections = ConnectionPolicy::Persistent { connections, streams };
        self.client.schedule = Schedule::Closed { workers, pause: Pause::None };
        self
    }

    fn party<'a>(&self, stage: &'a Stage, role: Role) -> &'a Party {
        if role == self.subject { &stage.subject } else { &stage.reference }
    }

    /// Starts the server.
    pub fn serve<'a>(&self, stage: &'a Stage) -> Finding<Server<'a>> {
        let answer = Server::start(stage, self.party(stage, Role::Server), &as_json(&self.server))?;
        self.accepted(Role::Server, answer)
    }

    /// Runs both endpoints and checks the requirements of every run without expected failures.
    pub fn run(&self, stage: &Stage) -> Finding<Trial> {
        let server = self.serve(stage)?;
        let trial = self.run_against(stage, server.port, server.configured.clone(), || {})?;
        let transport = server.stop(true)?;
        self.check(&trial)?;
        if let Some(report) = transport {
            verify::served(&report, &trial.samples)?;
        }
        Ok(trial)
    }

    /// Runs only the client, against a server at that port.
    pub fn run_against(
        &self,
        stage: &Stage,
        port: u16,
        server: Configured,
        in_window: impl FnOnce(),
    ) -> Finding<Trial> {
        let client = ClientSpec { port, ..self.client.clone() };
        let answer = run_client(stage, self.party(stage, Role::Client), &as_json(&client), in_window)?;
        let run = self.accepted(Role::Client, answer)?;
        let samples = match client.recording {
            Recording::Samples => samples(&client.results)?,
            Recording::Histograms | Recording::Loads | Recording::Totals => Vec::new(),
        };
        Ok(Trial { run, samples, server })
    }

    /// Returns the value of an accepted answer. `unsupported` skips the case or breaks the contract, depending on the
    /// role.
    pub fn accepted<T>(&self, role: Role, answer: Answer<T>) -> Finding<T> {
        match answer {
            Answer::Accepted(value) => Ok(value),
            Answer::Unsupported(message) if role != self.subject => {
                Err(Stop::skip(format!("the reference endpoint does not support it: {message}")))
            }
            Answer::Unsupported(message) if self.optional => Err(Stop::skip(format!("unsupported: {message}"))),
            other => {
                Err(Stop::broken(format!("expected the {} to accept the spec; {}", role.word(), other.describe())))
            }
        }
    }

    /// Checks the requirements of every run without expected failures.
    pub fn check(&self, trial: &Trial) -> Finding {
        verify::records(&self.client, &trial.run, &trial.samples)
    }
}

/// The request of a feature.
fn request(protocol: Protocol, feature: Feature, size: usize) -> Request {
    let body_size = match (feature, protocol.is_http()) {
        (Feature::Heron, _) => heron::request(protocol, heron::NUMBER).len() as u64,
        (Feature::Echo, true) => size as u64,
        // A different size from the response's, so that a confusion of both is detected.
        (Feature::Echo, false) => size as u64 / 2 + 3,
        _ => 0,
    };
    let body = match feature {
        Feature::Heron => heron::answer(protocol, heron::NUMBER),
        _ => pattern::body(size),
    };
    let path = match feature {
        Feature::Files | Feature::Pages => format!("/{size}.bin"),
        Feature::Echo => "/echo".to_owned(),
        Feature::Bytes => format!("/bytes/{size}"),
        Feature::Delay => format!("/delay/{DELAY_US}"),
        Feature::Redirect => "/redirect".to_owned(),
        Feature::Heron => heron::path(heron::NUMBER),
    };
    Request {
        method: if feature == Feature::Echo { "POST" } else { "GET" }.to_owned(),
        path,
        body_size,
        body: None,
        headers: Vec::new(),
        expect: Some(Expect { status: 200, body_size: body.len() as u64, sha256: sha256(&body) }),
    }
}

/// SHA-256 in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Whether a feature exists in a protocol.
pub const fn applies(feature: Feature, protocol: Protocol) -> bool {
    match feature {
        Feature::Heron => protocol.is_http() || protocol.is_grpc(),
        Feature::Echo | Feature::Delay => !protocol.is_grpc(),
        Feature::Files | Feature::Pages | Feature::Bytes | Feature::Redirect => protocol.is_http(),
    }
}

/// A feature that both endpoints declare.
fn common_feature(stage: &Stage, subject: Role, protocol: Protocol) -> Finding<Feature> {
    [Feature::Bytes, Feature::Files, Feature::Echo, Feature::Delay, Feature::Heron]
        .into_iter()
        .find(|feature| can_both(stage, subject, protocol, *feature))
        .ok_or_else(|| Stop::skip(format!("the two endpoints have no feature of {protocol} in common")))
}

/// Whether the protocol has the feature, and both endpoints declare it in their roles.
pub fn can_both(stage: &Stage, subject: Role, protocol: Protocol, feature: Feature) -> bool {
    let other = if subject == Role::Server { Role::Client } else { Role::Server };
    applies(feature, protocol)
        && stage.subject.can(subject, protocol, feature)
        && stage.reference.can(other, protocol, feature)
}
