//! The server of a URL, for `load`, `probe` and `page`.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use url::{Host, Url};
use wirelab_endpoint::Refusal;
use wirelab_endpoint::look::Head;
use wirelab_model::outcome::ErrorKind;
use wirelab_model::protocol::Protocol;
use wirelab_model::site::{self, USER_AGENT};
use wirelab_model::spec::{ClientIdentity, ClientSpec, ClientTls, ConnectionPolicy, Request, Timeouts, TlsVersion};
use wirelab_model::units::Span;
use wirelab_model::via::Via;

use crate::args::{ReachArgs, Resolve, TlsArg};
use crate::failure::{Failure, Result};
use crate::via;

/// A URL, taken apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Location {
    /// The parsed URL; if the path has placeholders, only its origin.
    url: Url,
    host: String,
    literal: Option<IpAddr>,
    port: u16,
    /// Path and query, with placeholders as written.
    pub path: String,
}

/// A server, and the path to request.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// The parsed URL; if the path has placeholders, only its origin.
    pub url: Url,
    /// The host's name, or its address as text.
    pub host: String,
    /// The address to connect to: that of the server or of its proxy.
    pub address: IpAddr,
    pub port: u16,
    /// The way to the server, if it is not direct.
    pub via: Option<Via>,
    /// Path and query.
    pub path: String,
}

impl Location {
    /// Parses a URL, whose path may have placeholders.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = |why: String| {
            Failure::input(format!("`{text}` cannot be measured: {why}. Give a URL such as https://localhost:8443/"))
        };
        // A parser would encode the braces.
        let (origin, own_path) = if text.contains("{{") { in_two(text) } else { (text, None) };
        if origin.contains("{{") {
            return Err(wrong("its host has a placeholder, which only path and query may have".to_owned()));
        }
        let parsed = Url::parse(origin).map_err(|error| wrong(error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(wrong(format!("its scheme is `{}` instead of http or https", parsed.scheme())));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(wrong(
                "it contains a user name or a password, which would not be sent; with `load`, send them \
                              with -H 'authorization: Basic {{env.NAME}}'"
                    .to_owned(),
            ));
        }
        let (Some(host), Some(port)) = (parsed.host(), parsed.port_or_known_default()) else {
            return Err(wrong("it has no host".to_owned()));
        };
        let (host, literal) = match host {
            Host::Domain(name) => (name.to_owned(), None),
            Host::Ipv4(address) => (address.to_string(), Some(IpAddr::V4(address))),
            Host::Ipv6(address) => (address.to_string(), Some(IpAddr::V6(address))),
        };
        let of_url =
            parsed.query().map_or_else(|| parsed.path().to_owned(), |query| format!("{}?{query}", parsed.path()));
        Ok(Self { host, literal, port, path: own_path.unwrap_or(of_url), url: parsed })
    }

    /// Whether the other URL is on the same server.
    pub fn is_beside(&self, other: &Self) -> bool {
        (self.url.scheme(), &self.host, self.port) == (other.url.scheme(), &other.host, other.port)
    }

    /// The server, reached as the options say.
    pub fn reached(self, reach: &ReachArgs) -> Result<Target> {
        let given = self.address_of(reach)?;
        let way = match (&reach.unix_socket, &reach.proxy) {
            (Some(path), _) => Some(via::unix_socket(path)?),
            (None, Some(url)) => Some(via::proxy(url, (&self.host, self.port), given)?),
            (None, None) => None,
        };
        match way {
            None => self.resolve(given),
            Some((address, via)) => Ok(Target { via: Some(via), ..self.resolve(Some(address))? }),
        }
    }

    /// The address that the options give for this server, instead of a look-up.
    fn address_of(&self, reach: &ReachArgs) -> Result<Option<IpAddr>> {
        let is_own = |one: &&Resolve| one.host == self.host && one.port == self.port;
        match (reach.resolve.iter().find(is_own), reach.resolve.first()) {
            (Some(one), _) => Ok(Some(one.address)),
            (None, Some(other)) => Err(Failure::input(format!(
                "--resolve is about {}:{}, but the URL is about {}:{}",
                other.host, other.port, self.host, self.port
            ))),
            (None, None) => Ok(reach.connect_to),
        }
    }

    /// Resolves the host, unless `connect_to` is given.
    pub fn resolve(self, connect_to: Option<IpAddr>) -> Result<Target> {
        let Self { url, host, literal, port, path } = self;
        let address = match connect_to.or(literal) {
            Some(address) => address,
            None => look_up(&host, port, "--connect-to ADDRESS sets its address")?,
        };
        Ok(Target { url, host, address, port, via: None, path })
    }
}

/// Origin and path of a URL whose path has placeholders.
fn in_two(url: &str) -> (&str, Option<String>) {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let Some(at) = url[authority..].find(['/', '?', '#']).map(|at| at + authority) else { return (url, None) };
    let path = url[at..].split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    (&url[..at], Some(path))
}

impl Target {
    /// Parses the URL and resolves its host, unless `connect_to` is given.
    pub fn find(url: &str, connect_to: Option<IpAddr>) -> Result<Self> {
        Location::parse(url)?.resolve(connect_to)
    }

    /// The URL of a path on this server.
    pub fn url_of(&self, path: &str) -> String {
        if path == self.path && !path.contains("{{") {
            return self.url.to_string();
        }
        format!("{}{path}", self.url.origin().ascii_serialization())
    }

    /// Whether it, and its proxy if it has one, are known to be on this machine or in a private network. Limits are for
    /// other hosts.
    pub fn is_near(&self) -> bool {
        let is_localhost = || self.host == "localhost" || self.host.ends_with(".localhost");
        match &self.via {
            None => site::is_near(self.address),
            Some(Via::UnixSocket(_)) => true,
            Some(Via::Proxy(proxy)) => {
                let server = proxy.server.or_else(|| self.host.parse().ok());
                site::is_near(self.address) && server.map_or_else(is_localhost, site::is_near)
            }
        }
    }

    /// The socket address that connections go to: that of the server or of its proxy; none with a Unix socket.
    pub fn socket(&self) -> Option<SocketAddr> {
        match &self.via {
            None => Some(SocketAddr::new(self.address, self.port)),
            Some(Via::UnixSocket(_)) => None,
            Some(Via::Proxy(proxy)) => Some(SocketAddr::new(self.address, proxy.port)),
        }
    }

    /// The place that connections go to, in words: the address, or the way.
    pub fn place(&self) -> String {
        match &self.via {
            None => SocketAddr::new(self.address, self.port).to_string(),
            Some(via @ Via::UnixSocket(_)) => via.to_string(),
            Some(via @ Via::Proxy(_)) => format!("through {via}"),
        }
    }

    /// Refuses a server whose first response to a request shows that measuring it makes no sense.
    pub fn accept(&self, (method, path): (&str, &str), head: &Head) -> Result {
        let url = self.url_of(path);
        let status = head.status;
        let remedy = match status {
            ..300 | 304 => return Ok(()),
            300..400 => {
                let place = head.values("location").next().unwrap_or("no address (it sends no Location)");
                return Err(Failure::input(format!(
                    "{url} answers {status} and redirects to {place}. A redirect is not followed, because its target may be \
                     another server; give the URL of the target instead, or `load --follow 1`"
                )));
            }
            415 => "The server does not take a body of this type; set it with -H 'content-type: ...'".to_owned(),
            400 | 411 | 413 | 422 => {
                "The server rejects the request; try another --method, -H or --body (a text, or @FILE)".to_owned()
            }
            401 | 403 => {
                "The server demands authorization; send it with -H 'authorization: Bearer {{env.TOKEN}}', which takes \
                 it from the environment"
                    .to_owned()
            }
            405 => match head.values("allow").next() {
                Some(allowed) => format!("The server does not allow {method} here, only {allowed}; try --method"),
                None if method == "POST" => "The server does not allow POST here; try --method GET".to_owned(),
                None => format!("The server does not allow {method} here; try --method POST"),
            },
            404 | 410 => "The server has nothing at this path".to_owned(),
            429 => "The server limits the rate of requests; lower it with --rate, or lift the limit there".to_owned(),
            500.. => "The server failed; its log may say why".to_owned(),
            _ => "The server refuses the request".to_owned(),
        };
        Err(Failure::failed(format!(
            "{url} answers {status}, so nothing was measured. {remedy}. If this answer is right, add --expect-status {status}"
        )))
    }

    /// The message for a failed request: the attempt, the failure and the remedy.
    pub fn unanswered(&self, protocol: Protocol, refusal: &Refusal) -> String {
        let attempt = format!("{} to {} ({})", protocol.title(), self.url, self.place());
        let Refusal::Failed(failure) = refusal else { return format!("{attempt}: {refusal}") };
        // Failures of the way itself have their remedies.
        let is_socket = matches!(self.via, Some(Via::UnixSocket(_)));
        let (carrier, port) = (if protocol.uses_udp() { "UDP" } else { "TCP" }, self.port);
        let remedy = match failure.kind {
            ErrorKind::Refused if is_socket => String::new(),
            ErrorKind::Refused => format!(". Does the server run and listen on {carrier} port {port}?"),
            ErrorKind::Unreachable => {
                ". Does a route to that address exist? --connect-to ADDRESS sets another address".to_owned()
            }
            ErrorKind::Certificate => {
                ". --ca FILE trusts another authority or this certificate, --insecure accepts any certificate"
                    .to_owned()
            }
            ErrorKind::Timeout if self.via.is_some() => {
                ". Does the server answer there? For a slow one, raise --timeout (with `load` also --connect-timeout)"
                    .to_owned()
            }
            ErrorKind::Timeout => format!(
                ". Does a server listen on {carrier} port {port}, and does no firewall drop the packets? For a slow server, \
                 raise --timeout (with `load` also --connect-timeout)"
            ),
            ErrorKind::Tls => ". The server must support this version of TLS (--tls sets another), and may ask for a \
                               certificate of the client (--cert, --key)"
                .to_owned(),
            ErrorKind::Protocol | ErrorKind::Reset | ErrorKind::Truncated => {
                let place = if is_socket { "at this socket" } else { "on this port" };
                format!(". Does the server support {} {place}?", protocol.title())
            }
            _ => String::new(),
        };
        format!("{attempt}: {failure}{remedy}", failure = failure.message)
    }

    /// Whether the scheme of the URL is https.
    pub fn is_secure(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Refuses a protocol that does not fit the scheme of the URL.
    pub fn admit(&self, protocol: Protocol) -> Result {
        if !protocol.is_http() {
            return Err(Failure::input(format!("{protocol} cannot request a URL; use h1, h1c, h2, h2c or h3")));
        }
        self.admit_scheme(protocol)
    }

    /// Refuses a protocol with TLS for http, and one without for https.
    pub fn admit_scheme(&self, protocol: Protocol) -> Result {
        if protocol.is_secure() != self.is_secure() {
            let scheme = if protocol.is_secure() { "https" } else { "http" };
            return Err(Failure::input(format!(
                "{protocol} needs a URL that begins with {scheme}://, but the URL is {}",
                self.url
            )));
        }
        Ok(())
    }

    /// Refuses a protocol that cannot go the way to the server.
    pub fn admit_way(&self, protocol: Protocol) -> Result {
        match &self.via {
            Some(via) if protocol.uses_udp() => Err(Failure::input(format!(
                "{} uses UDP, and {via} carries byte streams only; use h1 or h2",
                protocol.title()
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses options of TLS that the protocol cannot use, and files that cannot be read.
    pub fn admit_tls(&self, protocol: Protocol, reach: &ReachArgs) -> Result {
        if !self.is_secure() && (reach.cert.is_some() || reach.tls == TlsArg::Tls12) {
            let option = if reach.cert.is_some() { "--cert" } else { "--tls" };
            return Err(Failure::input(format!(
                "{option} needs a URL that begins with https://, but the URL is {}",
                self.url
            )));
        }
        if protocol.uses_quic() && reach.tls == TlsArg::Tls12 {
            return Err(Failure::input(format!(
                "--tls 1.2 does not exist in {}, whose QUIC has TLS 1.3 only; use h1 or h2",
                protocol.title()
            )));
        }
        for path in [&reach.cert, &reach.key].into_iter().flatten() {
            std::fs::File::open(path)
                .map_err(|error| Failure::input(format!("cannot read {}: {error}", path.display())))?;
        }
        Ok(())
    }

    /// A spec for sequential GET requests on one connection, which the caller adapts. One request in total.
    pub fn spec(&self, protocol: Protocol, reach: &ReachArgs, connect_timeout: Span, seed: u64) -> ClientSpec {
        ClientSpec {
            address: self.address,
            via: self.via.clone(),
            server_name: self.host.clone(),
            tls: protocol.is_secure().then(|| ClientTls {
                trust_anchor: reach.ca.clone(),
                verify: !reach.insecure,
                key_log: std::env::var_os("SSLKEYLOGFILE").map(PathBuf::from),
                identity: reach
                    .cert
                    .clone()
                    .zip(reach.key.clone())
                    .map(|(certificate, key)| ClientIdentity { certificate, key }),
                version: match reach.tls {
                    TlsArg::Tls12 => TlsVersion::Tls12,
                    TlsArg::Tls13 => TlsVersion::Tls13,
                },
            }),
            request: Request {
                headers: vec![("user-agent".to_owned(), USER_AGENT.to_owned())],
                ..Request::get(&self.path)
            },
            connections: ConnectionPolicy::Persistent { connections: 1, streams: 1 },
            timeouts: Timeouts { connect_ns: connect_timeout.nanos(), request_ns: reach.timeout.nanos() },
            seed,
            threads: Some(1),
            ..ClientSpec::plain(protocol, self.port)
        }
    }
}

/// Looks up a name. `remedy` says what to do if it has no address.
pub fn look_up(name: &str, port: u16, remedy: &str) -> Result<IpAddr> {
    let found = (name, port)
        .to_socket_addrs()
        .map_err(|error| Failure::failed(format!("cannot resolve the host `{name}`: {error}; {remedy}")))?;
    // IPv4 first: a name such as localhost often has an IPv6 address on which the server does not listen.
    let mut addresses: Vec<_> = found.map(|socket| socket.ip()).collect();
    addresses.sort_by_key(IpAddr::is_ipv6);
    addresses.first().copied().ok_or_else(|| Failure::failed(format!("`{name}` has no address")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target::find("https://127.0.0.1:8443/api", None).unwrap()
    }

    #[test]
    fn a_refusing_status_is_answered_with_what_may_help() {
        for (status, word) in [(400, "--body"), (401, "authorization"), (404, "path"), (405, "--method"), (503, "log")]
        {
            let failure = target().accept(("GET", "/api"), &Head { status, fields: Vec::new() }).unwrap_err();
            let message = format!("{failure:?}");
            assert!(message.contains(&status.to_string()) && message.contains(word), "{message}");
        }
        for status in [200, 204, 304] {
            target().accept(("GET", "/api"), &Head { status, fields: Vec::new() }).unwrap();
        }
        let allow = vec![("allow".to_owned(), "PUT, PATCH".to_owned())];
        let message =
            format!("{:?}", target().accept(("GET", "/api"), &Head { status: 405, fields: allow }).unwrap_err());
        assert!(message.contains("only PUT, PATCH"), "{message}");
    }

    #[test]
    fn placeholders_of_a_path_stay_as_they_are_written() {
        let location = Location::parse("https://127.0.0.1:8443/u/{{name}}?id={{id}}#top").unwrap();
        assert_eq!(location.path, "/u/{{name}}?id={{id}}");
        assert!(location.is_beside(&Location::parse("https://127.0.0.1:8443/other").unwrap()));
        assert!(!location.is_beside(&Location::parse("https://127.0.0.1/other").unwrap()));
        assert_eq!(target().url_of("/{{a}}"), "https://127.0.0.1:8443/{{a}}");
        assert!(Location::parse("https://{{host}}/").is_err());
    }
}
