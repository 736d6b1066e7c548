//! A page to load, and the configuration of the browser.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use wirelab_model::protocol::Protocol;

use crate::{Browser, Logs};

/// A page and the conditions for its load to be a sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The page's https address.
    pub url: Url,
    /// The expected number of requests; `None`: unknown. A load with another number is no sample.
    pub requests: Option<u32>,
    /// The size of the window, which decides which images are loaded and which element is the largest.
    pub viewport: Viewport,
    /// The time-out of the load.
    pub timeout: Duration,
    /// Whether pictures of the window are taken. They cost the browser time, so the load's times are not valid.
    pub film: bool,
    /// Whether the bodies of responses are kept. Chromium only; Firefox does not deliver them.
    pub bodies: bool,
}

/// The size of a window's content, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewport {
    pub width: u32,
    pub height: u32,
}

impl Viewport {
    /// The size for all browsers, whose own defaults differ.
    pub const DEFAULT: Self = Self { width: 1280, height: 800 };
}

/// The configuration of a browser, fixed for all its loads.
#[derive(Debug, Clone)]
pub struct Setup {
    pub browser: Browser,
    /// The path of its program.
    pub program: PathBuf,
    /// The version of HTTP to force.
    pub protocol: Protocol,
    /// The hosts of the pages. HTTP/3 is forced on these only, because browsers need each host's name.
    pub origins: Vec<Origin>,
    /// A certificate authority to trust in addition to the system's, as PEM.
    pub authority: Option<PathBuf>,
    /// The logs to write.
    pub logs: Logs,
}

/// A host and port that pages are loaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The host as URLs write it.
    pub host: String,
    pub port: u16,
    /// The address, which decides whether the host is on this machine.
    pub address: IpAddr,
}

impl Origin {
    /// Whether the host is on this machine.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_loopback(),
            IpAddr::V6(address) => address.is_loopback(),
        }
    }

    /// Whether the host is an address, not a name.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }
}

impl Setup {
    /// Whether all hosts are on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.origins.iter().all(Origin::is_local)
    }
}
