//! A page on a server that wirelab does not start.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// User agent in requests to servers that wirelab does not start, so that their owners can identify the sender.
pub const USER_AGENT: &str = concat!("wirelab/", env!("CARGO_PKG_VERSION"));

/// Location of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// The URL as parsed.
    pub url: String,
    /// The host: a name, or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// The address to connect to; absent: resolved from the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The certificate authorities to trust, PEM; absent: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_anchor: Option<PathBuf>,
}

impl Site {
    /// Whether a response with this status counts as the page: 2xx and 304. A redirect leads to another server.
    #[must_use]
    pub const fn is_page(status: u16) -> bool {
        status == 304 || (status >= 200 && status < 300)
    }
}
