//! The work of a job's clients: single requests, requests of the user, or loads of a page.

use crate::page::{PageName, Priorities};
use crate::request::WrittenRequest;
use crate::settings::Exchange;
use crate::units::{Size, Span};

/// The work of the clients.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// Single requests.
    Requests(Requests),
    /// Requests that the user wrote, in a mix by their weights.
    Own(Vec<WrittenRequest>),
    /// Loads of a page in a browser; a request is a load.
    Page(LoadedPage),
}

/// Equal requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Requests {
    /// The kind of their exchange.
    pub exchange: Exchange,
    /// Size of the request body.
    pub request_size: Size,
    /// Size of the response body; 0 if it is unknown before the response.
    pub response_size: Size,
    /// Delay of the server's response, for [`Exchange::Delay`].
    pub delay: Span,
}

/// A page that a browser loads.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadedPage {
    pub name: PageName,
    /// Size of all its bodies; 0 if wirelab does not generate the page.
    pub size: Size,
    /// Names of its hosts, the document's first, if there are several; each has a server of its own.
    pub hosts: Vec<String>,
    /// Delay of the response with the document.
    pub delay: Span,
    /// Whether early hints precede the document; absent: the study does not set it.
    pub early_hints: Option<bool>,
    /// Treatment of request priorities; absent: the study does not set it.
    pub priorities: Option<Priorities>,
}

impl Work {
    /// Sizes of the request and response body of one request; for a page, of all bodies.
    #[must_use]
    pub const fn body_sizes(&self) -> [Size; 2] {
        match self {
            Self::Requests(requests) => [requests.request_size, requests.response_size],
            // They differ from request to request.
            Self::Own(_) => [Size(0), Size(0)],
            Self::Page(page) => [Size(0), page.size],
        }
    }
}

impl Requests {
    /// Requests for a document of this size.
    #[must_use]
    pub const fn document(size: Size) -> Self {
        Self { exchange: Exchange::Files, request_size: Size(0), response_size: size, delay: Span(0) }
    }

    /// The time that the server must wait before its response, in nanoseconds, rounded down to the microseconds that a
    /// request can express.
    #[must_use]
    pub fn least_delay_ns(&self) -> u64 {
        match self.exchange {
            Exchange::Delay => self.delay.nanos() / 1000 * 1000,
            _ => 0,
        }
    }
}

impl LoadedPage {
    /// A page without hosts of its own, delay and hints.
    #[must_use]
    pub const fn plain(name: PageName, size: Size) -> Self {
        Self { name, size, hosts: Vec::new(), delay: Span(0), early_hints: None, priorities: None }
    }
}
