//! A laboratory in one process: servers and clients on threads, talked to by the contract through pipes.

use std::fs;
use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::path::PathBuf;
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use ring::digest::{SHA256, digest};
use serde::de::DeserializeOwned;
use tempfile::TempDir;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Event;
use wirelab_contract::pattern;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::sample::Sample;
use wirelab_contract::spec::{
    ClientSpec, ClientTls, ConnectionPolicy, Expect, Extent, Feature, Request, ServerSpec, ServerTls, Timeouts,
};

/// The protocols that this file's tests are about.
pub const OVER_TCP: [Protocol; 6] =
    [Protocol::Tcp, Protocol::Tls, Protocol::H1c, Protocol::H1, Protocol::H2c, Protocol::H2];

/// Certificates and documents, and a place for results.
pub struct Place {
    pub dir: TempDir,
}

impl Place {
    pub fn new() -> Self {
        let place = Self { dir: tempfile::tempdir().unwrap() };
        place.authority("ca", "localhost");
        fs::create_dir(place.path("documents")).unwrap();
        place
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes `NAME.pem`, and a certificate under it for the server's name: `NAME-leaf.pem`, `NAME-leaf.key`.
    pub fn authority(&self, name: &str, server_name: &str) {
        let mut params = CertificateParams::new(vec![]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let leaf = CertificateParams::new(vec![server_name.to_owned()]).unwrap().signed_by(&key, &authority).unwrap();
        fs::write(self.path(&format!("{name}.pem")), authority.pem()).unwrap();
        fs::write(self.path(&format!("{name}-leaf.pem")), leaf.pem()).unwrap();
        fs::write(self.path(&format!("{name}-leaf.key")), key.serialize_pem()).unwrap();
    }

    /// Writes the document `/SIZE.bin`.
    pub fn document(&self, size: usize) {
        fs::write(self.path(&format!("documents/{size}.bin")), pattern::body(size)).unwrap();
    }

    pub fn server_spec(&self, protocol: Protocol) -> ServerSpec {
        ServerSpec {
            tls: protocol.is_secure().then(|| ServerTls {
                certificate: self.path("ca-leaf.pem"),
                key: self.path("ca-leaf.key"),
                key_log: None,
                resumption: false,
                early_data: false,
            }),
            document_root: Some(self.path("documents")),
            features: vec![Feature::Files, Feature::Echo, Feature::Bytes, Feature::Delay],
            threads: Some(1),
            ..ServerSpec::plain(protocol)
        }
    }

    /// Ten requests for 100 bytes, one after the other, on one connection.
    pub fn client_spec(&self, protocol: Protocol, port: u16) -> ClientSpec {
        ClientSpec {
            tls: protocol.is_secure().then(|| ClientTls::trusting(self.path("ca.pem"))),
            request: get("/bytes/100", 100),
            connections: ConnectionPolicy::Persistent { connections: 1, streams: 1 },
            extent: Extent::Requests(10),
            timeouts: Timeouts { connect_ns: 5_000_000_000, request_ns: 10_000_000_000 },
            results: self.path("results.json"),
            ..ClientSpec::plain(protocol, port)
        }
    }

    pub fn samples(&self) -> Vec<Sample> {
        let text = fs::read_to_string(self.path("results.json")).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn results<T: DeserializeOwned>(&self) -> T {
        serde_json::from_str(&fs::read_to_string(self.path("results.json")).unwrap()).unwrap()
    }
}

/// A GET whose answer is so many bytes of the pattern.
pub fn get(path: &str, size: usize) -> Request {
    Request { expect: Some(pattern_of(size)), ..Request::get(path) }
}

/// A POST whose body comes back.
pub fn echo(size: usize) -> Request {
    Request { method: "POST".to_owned(), path: "/echo".to_owned(), body_size: size as u64, ..get("/", size) }
}

pub fn pattern_of(size: usize) -> Expect {
    let sha256 = digest(&SHA256, &pattern::body(size)).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    Expect { status: 200, body_size: size as u64, sha256 }
}

/// An endpoint on a thread, and the pipes to it.
pub struct Endpoint {
    pub words: PipeWriter,
    pub events: BufReader<PipeReader>,
    pub status: JoinHandle<i32>,
}

impl Endpoint {
    pub fn server(spec: &ServerSpec) -> Self {
        Self::start(serde_json::to_string(spec).unwrap(), wirelab_endpoint::serve_on)
    }

    pub fn client(spec: &ClientSpec) -> Self {
        Self::start(serde_json::to_string(spec).unwrap(), wirelab_endpoint::request_on)
    }

    pub fn start(spec: String, role: fn(&str, BufReader<PipeReader>, PipeWriter) -> i32) -> Self {
        let (their_words, words) = std::io::pipe().unwrap();
        let (events, their_events) = std::io::pipe().unwrap();
        let status = std::thread::spawn(move || role(&spec, BufReader::new(their_words), their_events));
        Self { words, events: BufReader::new(events), status }
    }

    /// The next event; an error or a refusal too.
    pub fn event(&mut self) -> Event {
        let mut line = String::new();
        self.events.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("not an event: `{line}` ({error})"))
    }

    pub fn say(&mut self, word: &str) {
        writeln!(self.words, "{word}").unwrap();
    }

    /// Starts a server that is expected to be ready.
    pub fn serving(spec: &ServerSpec) -> (Self, u16) {
        let mut server = Self::server(spec);
        match server.event() {
            Event::Ready { port: Some(port), .. } => (server, port),
            other => panic!("the server did not get ready: {other:?}"),
        }
    }

    /// Ends a server in order; the requests that it answered.
    pub fn stop(self) -> u64 {
        match self.stopped() {
            Event::Done { requests: Some(requests), .. } => requests,
            other => panic!("not the end of a server: {other:?}"),
        }
    }

    /// Ends a server in order; its last event.
    pub fn stopped(mut self) -> Event {
        self.say("stop");
        let done = self.event();
        assert_eq!(self.status.join().unwrap(), 0);
        done
    }

    /// Leads a client through a trial that is expected to work; its window and its last event.
    pub fn trial(mut self) -> (u64, Event) {
        assert!(matches!(self.event(), Event::Ready { port: None, .. }));
        self.say("go");
        let warm = self.event();
        assert_eq!(warm, Event::Warm { until_steady: None });
        self.say("go");
        let window = match self.event() {
            Event::End { window_ns } => window_ns,
            other => panic!("not the end of the window: {other:?}"),
        };
        self.say("finish");
        let done = self.event();
        assert!(matches!(done, Event::Done { .. }), "{done:?}");
        assert_eq!(self.status.join().unwrap(), 0);
        (window, done)
    }

    /// Leads a client to the error that is expected before the window.
    pub fn failing(mut self) -> (ErrorKind, String) {
        assert!(matches!(self.event(), Event::Ready { port: None, .. }));
        self.say("go");
        let event = self.event();
        assert_eq!(self.status.join().unwrap(), 1);
        match event {
            Event::Error { kind, message } => (kind, message),
            other => panic!("not an error: {other:?}"),
        }
    }

    /// The message of an endpoint that is expected to refuse its spec.
    pub fn refused(mut self) -> String {
        let event = self.event();
        assert_eq!(self.status.join().unwrap(), 127);
        match event {
            Event::Unsupported { message } => message,
            other => panic!("not a refusal: {other:?}"),
        }
    }
}
