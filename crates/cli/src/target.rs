//! The server that a URL names.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use url::{Host, Url};
use wirelab_endpoint::Refusal;
use wirelab_endpoint::look::Head;
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::site::USER_AGENT;
use wirelab_model::spec::{
    ClientSpec, ClientTls, ConnectionPolicy, Extent, Recording, Request, Resumption, Schedule, Timeouts, Transport,
};
use wirelab_model::units::Span;

use crate::args::ReachArgs;
use crate::failure::{Failure, Result};

/// A server, and what to ask it for.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The URL as it was understood.
    pub url: Url,
    /// The host's name, or its address in words.
    pub host: String,
    /// The address to connect to.
    pub address: IpAddr,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl Target {
    /// Reads the URL and looks its host up, unless `connect_to` says where it is.
    pub fn find(url: &str, connect_to: Option<IpAddr>) -> Result<Self> {
        let wrong = |why: String| {
            Failure::input(format!(
                "`{url}` is not a URL that can be measured: {why}. Example: https://localhost:8443/"
            ))
        };
        let parsed = Url::parse(url).map_err(|error| wrong(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong(format!("its scheme is `{}`; http or https was expected", parsed.scheme())));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong("it has a user name or a password, which would not be sent".to_owned()));
        }
        let (Some(host), Some(port)) = (parsed.host(), parsed.port_or_known_default()) else {
            return Err(wrong("it names no host".to_owned()));
        };
        let (name, literal) = match host {
            Host::Domain(name) => (name.to_owned(), None),
            Host::Ipv4(address) => (address.to_string(), Some(IpAddr::V4(address))),
            Host::Ipv6(address) => (address.to_string(), Some(IpAddr::V6(address))),
        };
        let address = match connect_to.or(literal) {
            Some(address) => address,
            None => look_up(&name, port)?,
        };
        let path =
            parsed.query().map_or_else(|| parsed.path().to_owned(), |query| format!("{}?{query}", parsed.path()));
        Ok(Self { host: name, address, port, path, url: parsed })
    }

    /// Where to connect to.
    pub const fn socket(&self) -> SocketAddr {
        SocketAddr::new(self.address, self.port)
    }

    /// Refuses a server whose first answer shows that there is nothing to measure.
    pub fn accept(&self, head: &Head) -> Result {
        match head.status {
            304 => Ok(()),
            status @ 300..400 => {
                let place = head.values("location").next().unwrap_or("nowhere (it sends no Location)");
                Err(Failure::failed(format!(
                    "{} answers {status} and sends clients to {place}. A redirect is not followed, because its target may be \
                     another server: give that URL instead",
                    self.url
                )))
            }
            status @ 400.. => Err(Failure::failed(format!(
                "{} answers {status}: there is nothing to measure. Is the path right?",
                self.url
            ))),
            _ => Ok(()),
        }
    }

    /// What kept the server from answering, with the attempt and the remedy.
    pub fn unanswered(&self, protocol: Protocol, refusal: &Refusal) -> String {
        let attempt = format!("{} to {} ({})", protocol.title(), self.url, self.socket());
        let Refusal::Failed(failure) = refusal else { return format!("{attempt}: {refusal}") };
        let (carrier, port) = (if protocol.uses_udp() { "UDP" } else { "TCP" }, self.port);
        let remedy = match failure.kind {
            ErrorKind::Refused => format!(". Does the server run, and listen on {carrier} port {port}?"),
            ErrorKind::Unreachable => {
                ". Is there a route to that address? --connect-to ADDRESS names another".to_owned()
            }
            ErrorKind::Certificate => ". --ca FILE trusts another authority, --insecure trusts every server".to_owned(),
            ErrorKind::Timeout => format!(
                ". Does something listen on {carrier} port {port}, and does no firewall drop it? A longer --timeout waits for \
                 a slow server (with `load` also --connect-timeout)"
            ),
            ErrorKind::Tls => ". The server has to speak TLS 1.3".to_owned(),
            ErrorKind::Protocol | ErrorKind::Reset | ErrorKind::Truncated => {
                format!(". Does the server speak {} on this port?", protocol.title())
            }
            _ => String::new(),
        };
        format!("{attempt}: {failure}{remedy}", failure = failure.message)
    }

    /// Whether the URL asks for TLS.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Refuses a protocol that the URL's scheme rules out.
    pub fn admit(&self, protocol: Protocol) -> Result {
        if !protocol.is_http() {
            return Err(Failure::input(format!("{protocol} cannot ask for a URL; h1, h1c, h2, h2c and h3 can")));
        }
        if protocol.is_secure() != self.is_secure() {
            let scheme = if protocol.is_secure() { "https" } else { "http" };
            return Err(Failure::input(format!(
                "{protocol} needs a URL that begins with {scheme}://, which {} does not",
                self.url
            )));
        }
        Ok(())
    }

    /// A spec for one request after the other on one connection; the caller changes what it wants otherwise.
    pub fn spec(&self, protocol: Protocol, reach: &ReachArgs, connect_timeout: Span, seed: u64) -> ClientSpec {
        ClientSpec {
            contract: CONTRACT_VERSION,
            protocol,
            address: self.address,
            addresses: Vec::new(),
            resolves: false,
            discovers: false,
            port: self.port,
            server_name: self.host.clone(),
            tls: protocol.is_secure().then(|| ClientTls {
                trust_anchor: reach.ca.clone(),
                verify: !reach.insecure,
                key_log: std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from),
            }),
            request: Request {
                method: "GET".to_owned(),
                path: self.path.clone(),
                body_size: 0,
                headers: vec![("user-agent".to_owned(), USER_AGENT.to_owned())],
                expect: None,
            },
            page: None,
            connections: ConnectionPolicy::Persistent { connections: 1, streams: 1 },
            schedule: Schedule::Closed { workers: 1, pause: wirelab_model::spec::Pause::None },
            extent: Extent::Requests(1),
            warm_up: None,
            resumption: Resumption::None,
            timeouts: Timeouts { connect_ns: connect_timeout.nanos(), request_ns: reach.timeout.nanos() },
            seed,
            recording: Recording::Samples,
            results: PathBuf::new(),
            qlog_dir: None,
            threads: Some(1),
            exposition: None,
            transport: Transport::default(),
        }
    }
}

fn look_up(name: &str, port: u16) -> Result<IpAddr> {
    let found = (name, port).to_socket_addrs().map_err(|error| {
        Failure::failed(format!("cannot find the address of `{name}`: {error}. --connect-to ADDRESS says where it is"))
    })?;
    // IPv4 first: a name such as localhost often has an IPv6 address on which the server does not listen.
    let mut addresses: Vec<_> = found.map(|socket| socket.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.first().copied().ok_or_else(|| Failure::failed(format!("`{name}` has no address")))
}
