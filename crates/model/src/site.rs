//! A page on a server that wirelab does not start.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::proxy::ProxyUrl;
use crate::via::ProxyScheme;

/// User agent in requests to servers that wirelab does not start, so that their owners can identify the sender.
pub const USER_AGENT: &str = concat!("wirelab/", env!("CARGO_PKG_VERSION"));

/// Location of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The URL as parsed.
    pub url: String,
    /// The host: a name, or an address.
    pub host: String,
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// The address to connect to; absent: resolved from the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The certificate authorities to trust, PEM; absent: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_anchor: Option<PathBuf>,
    /// The Unix socket at which the server listens; absent: it listens at an address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unix_socket: Option<PathBuf>,
    /// The proxy through which connections go; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<ProxyUrl>,
}

/// Whether an address is of this machine or of a private network (RFC 1918, RFC 3927, RFC 4193, RFC 4291).
#[must_use]
pub const fn is_near(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_loopback() || address.is_private() || address.is_link_local(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local() || address.is_unicast_link_local(),
    }
}

impl Site {
    /// Whether it is known, without a look-up of its name, to be on this machine or in a private network.
    #[must_use]
    pub fn is_near(&self) -> bool {
        if self.unix_socket.is_some() {
            return true;
        }
        if self.proxy.as_ref().is_some_and(|proxy| !proxy.is_near()) {
            return false;
        }
        let is_this_machine = self.host == "localhost" || self.host.ends_with(".localhost");
        let address = self.address.or_else(|| self.host.parse().ok());
        address.map_or(is_this_machine, is_near)
    }

    /// Whether the proxy, and not the client, looks up the host's name.
    #[must_use]
    pub fn is_looked_up_by_proxy(&self) -> bool {
        let proxy = self.proxy.as_ref().map(|proxy| proxy.scheme);
        self.address.is_none() && matches!(proxy, Some(ProxyScheme::Http | ProxyScheme::Socks5h))
    }

    /// Whether a response with this status counts as the page: 2xx and 304. A redirect leads to another server.
    #[must_use]
    pub const fn is_page(status: u16) -> bool {
        status == 304 || (status >= 200 && status < 300)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_this_machine_and_of_private_networks_are_near() {
        let site = |host: &str, address: Option<&str>| Site {
            url: format!("https://{host}/"),
            host: host.to_owned(),
            port: 443,
            path: "/".to_owned(),
            address: address.map(|address| address.parse().unwrap()),
            trust_anchor: None,
            unix_socket: None,
            proxy: None,
        };
        for (host, address, near) in [
            ("localhost", None, true),
            ("shop.localhost", None, true),
            ("10.1.2.3", None, true),
            ("192.168.1.1", None, true),
            ("172.32.0.1", None, false),
            ("::1", None, true),
            ("fd00::1", None, true),
            ("2001:db8::1", None, false),
            ("example.org", None, false),
            ("staging.example.org", Some("10.0.0.7"), true),
            ("localhost", Some("203.0.113.7"), false),
        ] {
            assert_eq!(site(host, address).is_near(), near, "{host} {address:?}");
        }
        let through = |host: &str, proxy: &str| Site { proxy: proxy.parse().ok(), ..site(host, None) };
        assert!(through("10.1.2.3", "http://localhost:1").is_near());
        assert!(!through("10.1.2.3", "http://gate.example:1").is_near());
        assert!(!through("example.org", "http://localhost:1").is_near());
        let socket = Site { unix_socket: Some("/run/api.sock".into()), ..site("example.org", None) };
        assert!(socket.is_near());
    }
}
