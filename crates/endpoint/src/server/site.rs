//! The content of a server: decides the answers to requests, for every protocol alike.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::CACHE_CONTROL;
use http::{HeaderValue, Method, Response, Uri};
use wirelab_contract::heron;
use wirelab_contract::page::content_type;
use wirelab_contract::spec::{Feature, ServerSpec};

use crate::refusal::Refusal;
use crate::server::answers::Answers;
use crate::server::documents::Documents;
use crate::server::prelude::Prelude;

/// The longest delay that a client may ask for, in microseconds: an hour.
const LONGEST_DELAY_US: u64 = 3_600_000_000;

/// The largest generated body that a client may ask for, in bytes.
const LARGEST_BODY: u64 = 1 << 40;

/// The address that redirects to itself.
const ITSELF: &str = "/redirect";

/// The content of a server, and its count of requests.
#[derive(Debug)]
pub struct Site {
    documents: Option<Documents>,
    answers: Option<Answers>,
    pages: bool,
    prelude: Option<Prelude>,
    echo: bool,
    bytes: bool,
    delay: bool,
    redirect: bool,
    heron: bool,
    added_work: Duration,
    answered: AtomicU64,
}

/// The answer to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Status 200 with this body.
    Document(Bytes),
    /// Status 200 with this body and this `content-type`.
    Typed(Bytes, &'static str),
    /// Status 200 with this many bytes of the pattern.
    Pattern(u64),
    /// Status 200 with the request's own body, streamed.
    Echo,
    /// Status 200 with an empty body, this many microseconds after the arrival of the request.
    Delay(u64),
    /// Status 302 with an empty body and this `location`.
    Redirect(&'static str),
    /// This status with an empty body.
    Status(u16),
}

impl Site {
    /// Creates the content of the spec. Loads the documents, which takes time.
    pub fn new(spec: &ServerSpec) -> Result<Self, Refusal> {
        let has = |feature| spec.features.contains(&feature);
        let answers = spec.answers.as_deref().map(Answers::load).transpose()?;
        let documents = match (&spec.document_root, has(Feature::Files) || has(Feature::Pages)) {
            (Some(root), _) => Some(Documents::load(root)?),
            (None, true) if answers.is_none() => {
                return Err(Refusal::failed("the feature `files` or `pages` is set without a `document_root`"));
            }
            (None, _) => None,
        };
        let answered = AtomicU64::new(0);
        Ok(Self {
            documents,
            answers,
            pages: has(Feature::Pages),
            prelude: spec.page.as_ref().map(Prelude::new).transpose()?,
            echo: has(Feature::Echo),
            bytes: has(Feature::Bytes),
            delay: has(Feature::Delay),
            redirect: has(Feature::Redirect),
            heron: has(Feature::Heron),
            added_work: Duration::from_nanos(spec.added_work_ns.unwrap_or(0)),
            answered,
        })
    }

    /// Whether raw requests may ask for a delay.
    #[must_use]
    pub const fn offers_delay(&self) -> bool {
        self.delay
    }

    /// Whether gRPC calls may ask for a root.
    #[must_use]
    pub const fn offers_heron(&self) -> bool {
        self.heron
    }

    /// Whether a page needs more than serving its files.
    #[must_use]
    pub const fn attends_to_a_page(&self) -> bool {
        self.prelude.is_some()
    }

    /// Delay and hints before the answer to an HTTP request for this path.
    #[must_use]
    pub fn prelude(&self, path: &str) -> Option<&Prelude> {
        self.prelude.as_ref().filter(|prelude| prelude.precedes(path))
    }

    /// The listed answer to an HTTP request; `None` if the server has documents, and [`Self::reply`] decides.
    #[must_use]
    pub fn recorded(&self, method: &Method, uri: &Uri) -> Option<Response<Bytes>> {
        let mut response = self.answers.as_ref()?.to(method, uri);
        if self.attends_to_a_page() {
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static(Prelude::KEPT));
        }
        Some(response)
    }

    /// The answer to an HTTP request. `path` is without the query. The answer to HEAD is that to GET; the caller leaves
    /// out its body.
    #[must_use]
    pub fn reply(&self, method: &str, path: &str) -> Reply {
        if self.echo && path == "/echo" {
            return if method == "POST" { Reply::Echo } else { Reply::Status(405) };
        }
        if !matches!(method, "GET" | "HEAD") {
            return Reply::Status(405);
        }
        if let Some(number) = path.strip_prefix("/bytes/").filter(|_| self.bytes) {
            return number.parse().ok().filter(|n| *n <= LARGEST_BODY).map_or(Reply::Status(400), Reply::Pattern);
        }
        if let Some(number) = path.strip_prefix("/delay/").filter(|_| self.delay) {
            return number.parse().ok().filter(|n| *n <= LONGEST_DELAY_US).map_or(Reply::Status(400), Reply::Delay);
        }
        if self.heron && path.starts_with("/heron/") {
            let root = heron::number(path).map(heron::root).filter(|root| !root.is_nan());
            return root.map_or(Reply::Status(400), |root| Reply::Document(heron::text(root).into()));
        }
        if self.redirect && path == ITSELF {
            return Reply::Redirect(ITSELF);
        }
        match self.documents.as_ref().and_then(|documents| documents.get(path)) {
            Some(body) => match content_type(path).filter(|_| self.pages) {
                Some(kind) => Reply::Typed(body, kind),
                None => Reply::Document(body),
            },
            None => Reply::Status(404),
        }
    }

    /// Works before a response as long as the spec says. It keeps the processor: a timer would be late by more than the
    /// few microseconds that matter here, and would leave no known processor time.
    pub fn work(&self) {
        if !self.added_work.is_zero() {
            let begun = Instant::now();
            while begun.elapsed() < self.added_work {
                spin_loop();
            }
        }
    }

    /// Counts an answered request.
    pub fn count(&self) {
        self.answered.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of answered requests so far.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.answered.load(Ordering::Relaxed)
    }
}
