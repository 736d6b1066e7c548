//! Discovery of HTTP/3: the HTTPS resource record (RFC 9460) and Alt-Svc (RFC 7838).
//!
//! One question to one name server needs no resolver: `hickory-resolver` would add a cache, search lists and several
//! crates to what this file does in a page.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::str::FromStr;
use std::time::Duration;

use hickory_proto::ProtoError;
use hickory_proto::op::{Message, Query};
use hickory_proto::rr::rdata::svcb::SvcParamValue;
use hickory_proto::rr::{Name, RData, RecordType};

/// The file with the system's name servers.
const RESOLVER: &str = "/etc/resolv.conf";

/// Why the DNS records of a host are unknown.
#[derive(Debug)]
pub enum DiscoveryError {
    /// Such hosts have no records.
    NoRecords {
        /// The kind of host.
        what: &'static str,
    },
    /// The host is no valid name.
    NotAName {
        host: String,
        /// The error of the parser.
        source: ProtoError,
    },
    /// The query cannot be written.
    Query(ProtoError),
    /// The system's name servers cannot be read.
    Resolver(io::Error),
    /// The system has no name server.
    NoNameServer,
    /// The name server did not answer.
    NoAnswer {
        /// The name server.
        server: SocketAddr,
        /// The error of the socket.
        source: io::Error,
    },
    /// The name server answered another query.
    OtherAnswer {
        /// The name server.
        server: SocketAddr,
    },
    /// The answer is no DNS message.
    Unreadable {
        /// The name server.
        server: SocketAddr,
        /// The error of the parser.
        source: ProtoError,
    },
}

impl fmt::Display for DiscoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoRecords { what } => write!(f, "{what} has no DNS records"),
            Self::NotAName { host, source } => write!(f, "`{host}` is not a DNS name: {source}"),
            Self::Query(error) => write!(f, "cannot write the DNS query: {error}"),
            Self::Resolver(error) => write!(f, "cannot read {RESOLVER}: {error}"),
            Self::NoNameServer => write!(f, "{RESOLVER} names no name server"),
            Self::NoAnswer { server, source } => write!(f, "the name server {server} did not answer: {source}"),
            Self::OtherAnswer { server } => write!(f, "the name server {server} answered another query"),
            Self::Unreadable { server, source } => {
                write!(f, "the name server {server} sent something unreadable: {source}")
            }
        }
    }
}

/// Time-out of the name server's answer. The query is sent twice.
const WAIT: Duration = Duration::from_secs(2);

/// The ALPN identifiers in the HTTPS records of `host`; empty without a record.
///
/// # Errors
/// If the name server cannot be reached, or does not answer.
pub fn https_record(host: &str, port: u16) -> Result<Vec<String>, DiscoveryError> {
    if host.parse::<IpAddr>().is_ok() || host.starts_with('[') {
        return Err(DiscoveryError::NoRecords { what: "an address" });
    }
    // RFC 6761, section 6.3: name servers are not asked for these names.
    if host == "localhost" || host.ends_with(".localhost") {
        return Err(DiscoveryError::NoRecords { what: "the name localhost" });
    }
    // RFC 9460, section 9.1: ports other than 443 are a prefix of the name.
    let name = if port == 443 { format!("{host}.") } else { format!("_{port}._https.{host}.") };
    let name = Name::from_str(&name).map_err(|source| DiscoveryError::NotAName { host: host.to_owned(), source })?;
    let server = name_server()?;
    let mut message = Message::query();
    message.add_query(Query::query(name, RecordType::HTTPS));
    message.metadata.recursion_desired = true;
    let bytes = message.to_vec().map_err(DiscoveryError::Query)?;
    let answer = ask(server, &bytes, message.metadata.id)?;
    let mut protocols = Vec::new();
    for record in answer.answers {
        if let RData::HTTPS(record) = &record.data {
            for (_, value) in &record.svc_params {
                if let SvcParamValue::Alpn(alpn) = value {
                    protocols.extend(alpn.0.iter().cloned());
                }
            }
        }
    }
    Ok(protocols)
}

/// The first name server of the system.
fn name_server() -> Result<SocketAddr, DiscoveryError> {
    let text = std::fs::read_to_string(RESOLVER).map_err(DiscoveryError::Resolver)?;
    text.lines()
        .filter_map(|line| line.trim().strip_prefix("nameserver")?.trim().parse::<IpAddr>().ok())
        .next()
        .map(|address| SocketAddr::new(address, 53))
        .ok_or(DiscoveryError::NoNameServer)
}

/// Sends the query and returns the answer with the same number.
fn ask(server: SocketAddr, query: &[u8], id: u16) -> Result<Message, DiscoveryError> {
    let attempt = |source| DiscoveryError::NoAnswer { server, source };
    let any: IpAddr = if server.is_ipv4() { [0, 0, 0, 0].into() } else { [0u16; 8].into() };
    let socket = UdpSocket::bind((any, 0)).map_err(attempt)?;
    socket.connect(server).map_err(attempt)?;
    socket.set_read_timeout(Some(WAIT)).map_err(attempt)?;
    let mut buffer = [0; 4096];
    let mut last = DiscoveryError::OtherAnswer { server };
    for _ in 0..2 {
        socket.send(query).map_err(attempt)?;
        match socket.recv(&mut buffer) {
            Err(error) => last = attempt(error),
            Ok(length) => match Message::from_vec(&buffer[..length]) {
                Ok(message) if message.metadata.id == id => return Ok(message),
                Ok(_) => last = DiscoveryError::OtherAnswer { server },
                Err(error) => last = DiscoveryError::Unreadable { server, source: error.into() },
            },
        }
    }
    Err(last)
}

/// The protocols in an `Alt-Svc` field, in its order; empty for `clear` and without the field.
pub fn alt_svc(field: &str) -> Vec<String> {
    if field.trim() == "clear" {
        return Vec::new();
    }
    field
        .split(',')
        .filter_map(|entry| entry.split(';').next()?.split_once('='))
        .map(|(protocol, authority)| format!("{} at {}", protocol.trim(), authority.trim().trim_matches('"')))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_offers_of_alt_svc_are_read_in_order() {
        let offers = alt_svc(r#"h3=":443"; ma=2592000,h3-29=":443"; ma=2592000"#);
        assert_eq!(offers, ["h3 at :443", "h3-29 at :443"]);
        assert!(alt_svc("clear").is_empty());
    }

    #[test]
    fn addresses_and_localhost_have_no_record_and_are_not_asked_for() {
        for host in ["127.0.0.1", "::1", "localhost", "a.localhost"] {
            assert!(https_record(host, 443).unwrap_err().to_string().contains("no DNS records"), "{host}");
        }
    }
}
