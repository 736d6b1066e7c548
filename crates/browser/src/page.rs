//! What is loaded, and how.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use url::Url;
use wirelab_model::protocol::Protocol;

use crate::{Browser, Logs};

/// A page, and when its load counts.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// Its address, https.
    pub url: Url,
    /// The requests that it makes; absent: nobody knows. A load with another number is no sample.
    pub requests: Option<u32>,
    /// How large the window is. It decides which images are loaded, and which is the largest.
    pub viewport: Viewport,
    /// The deadline of the load.
    pub timeout: Duration,
    /// Whether pictures of the window are taken meanwhile. It takes the browser's time, so such a load says nothing of its length.
    pub film: bool,
    /// Whether the bodies of its responses are asked for when it is over. Chromium's alone; Firefox has none.
    pub bodies: bool,
}

/// The size of a window's content, in CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Viewport {
    /// Across.
    pub width: u32,
    /// Down.
    pub height: u32,
}

impl Viewport {
    /// The same in every browser, whose own defaults differ.
    pub const DEFAULT: Self = Self { width: 1280, height: 800 };
}

/// How a browser is started: what has to be the same for all its loads.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Which browser.
    pub browser: Browser,
    /// Its program.
    pub program: PathBuf,
    /// The version of HTTP to force.
    pub protocol: Protocol,
    /// The hosts of the pages. HTTP/3 is forced on these alone: browsers have to be told each.
    pub origins: Vec<Origin>,
    /// A certificate authority to trust beside the system's, PEM.
    pub authority: Option<PathBuf>,
    /// What it writes of its connections.
    pub logs: Logs,
}

/// A host and port that pages are loaded from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    /// The host as URLs write it.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Its address, which decides whether it is on this machine.
    pub address: IpAddr,
}

impl Origin {
    /// Whether it is on this machine.
    #[must_use]
    pub const fn is_local(&self) -> bool {
        match self.address {
            IpAddr::V4(address) => address.is_loopback(),
            IpAddr::V6(address) => address.is_loopback(),
        }
    }

    /// Whether the host is an address and no name.
    #[must_use]
    pub fn is_literal(&self) -> bool {
        self.host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok()
    }
}

impl Setup {
    /// Whether nothing but this machine has to be reached.
    #[must_use]
    pub fn is_local(&self) -> bool {
        self.origins.iter().all(Origin::is_local)
    }
}
