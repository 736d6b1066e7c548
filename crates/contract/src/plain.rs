//! The simplest specs, as a base for others: probes, the contract suite, `wirelab load` and tests.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use crate::CONTRACT_VERSION;
use crate::protocol::Protocol;
use crate::spec::{
    ClientSpec, ClientTls, ConnectionPolicy, Extent, Pause, Recording, Request, Resumption, Schedule, ServerSpec,
    Timeouts, TlsVersion, Transport,
};

/// Five seconds, in nanoseconds.
const FIVE_SECONDS: u64 = 5_000_000_000;

impl ServerSpec {
    /// A server named `localhost` on 127.0.0.1, at a port that the kernel chooses, without TLS and features.
    #[must_use]
    pub fn plain(protocol: Protocol) -> Self {
        Self {
            contract: CONTRACT_VERSION,
            protocol,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            port: 0,
            server_name: "localhost".to_owned(),
            tls: None,
            document_root: None,
            answers: None,
            features: Vec::new(),
            page: None,
            qlog_dir: None,
            threads: None,
            max_connection_age_ns: None,
            added_work_ns: None,
            counts: false,
            exposition: None,
            transport: Transport::default(),
        }
    }
}

impl ClientSpec {
    /// One GET of `/` from the server `localhost` on 127.0.0.1, on a connection of its own, without TLS. Connection and
    /// request may take five seconds each.
    #[must_use]
    pub fn plain(protocol: Protocol, port: u16) -> Self {
        Self {
            contract: CONTRACT_VERSION,
            protocol,
            address: IpAddr::V4(Ipv4Addr::LOCALHOST),
            addresses: Vec::new(),
            resolves: false,
            discovers: false,
            via: None,
            port,
            server_name: "localhost".to_owned(),
            tls: None,
            request: Request::get("/"),
            mix: Vec::new(),
            page: None,
            connections: ConnectionPolicy::PerRequest,
            schedule: Schedule::Closed { workers: 1, pause: Pause::None },
            extent: Extent::Requests(1),
            ramp: Vec::new(),
            warm_up: None,
            until_steady: false,
            resumption: Resumption::None,
            timeouts: Timeouts { connect_ns: FIVE_SECONDS, request_ns: FIVE_SECONDS },
            seed: 1,
            recording: Recording::Samples,
            results: PathBuf::new(),
            qlog_dir: None,
            threads: None,
            exposition: None,
            transport: Transport::default(),
        }
    }
}

impl ClientTls {
    /// A client that trusts these certificate authorities.
    #[must_use]
    pub const fn trusting(authorities: PathBuf) -> Self {
        let version = TlsVersion::Tls13;
        Self { trust_anchor: Some(authorities), verify: true, key_log: None, identity: None, version }
    }
}

impl Request {
    /// A GET without an expected response.
    #[must_use]
    pub fn get(path: &str) -> Self {
        let (method, path) = ("GET".to_owned(), path.to_owned());
        Self { method, path, body_size: 0, body: None, headers: Vec::new(), expect: None }
    }
}
