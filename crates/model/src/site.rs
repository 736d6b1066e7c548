//! A page of a server that is not started here, and perhaps not ours.

use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How a client names itself to servers that are not started here, so that their owners know whom to ask.
pub const USER_AGENT: &str = concat!("wirelab/", env!("CARGO_PKG_VERSION"));

/// Where a page is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Site {
    /// Its URL, as it was understood.
    pub url: String,
    /// The host: a name, or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Path and query.
    pub path: String,
    /// The address to connect to; absent: that of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// The certificate authorities to trust, PEM; absent: those of the system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_anchor: Option<PathBuf>,
}

impl Site {
    /// Whether a response with this status is the page: a redirect is another server's business, and 304 is no redirect.
    #[must_use]
    pub const fn is_page(status: u16) -> bool {
        status == 304 || (status >= 200 && status < 300)
    }
}
