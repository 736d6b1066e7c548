//! A request of a page and its response, as a browser reports them.

use serde::Serialize;
use serde_json::{Value, json};

/// A request and its response. Values that the browser does not report are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Resource {
    /// The address, without the fragment.
    pub url: String,
    /// Host and port.
    pub host: String,
    /// GET, POST, ...
    pub method: String,
    /// The purpose of the request in the browser's words: document, script, image, ...
    pub kind: String,
    /// The status of the response.
    pub status: Option<u16>,
    /// The content type.
    pub mime: Option<String>,
    /// The protocol from the browser's network events, as an ALPN identifier.
    pub protocol: Option<String>,
    /// The protocol from the page's own timeline; `None` if it has no entry, or another host hides it.
    pub page_protocol: Option<String>,
    /// Why the response is incomplete.
    pub error: Option<String>,
    /// Whether the browser itself cancelled or blocked the request, so that no server is to blame.
    pub withdrawn: bool,
    /// The target of a redirect.
    pub redirect: Option<String>,
    /// The number of the connection that carried the response.
    pub connection: Option<u64>,
    /// The times of the request's phases.
    #[serde(flatten)]
    pub moments: Moments,
    /// Bytes received, header and body, as transferred.
    pub received: Option<u64>,
    /// The part of these bytes that is the response's header.
    pub header_bytes: Option<u64>,
    /// Bytes of the request line and header in the form of HTTP/1.1, before the compression of HTTP/2 and HTTP/3.
    pub request_header_bytes: Option<u64>,
    /// The request's header fields.
    #[serde(skip)]
    pub request_headers: Vec<(String, String)>,
    /// The response's header fields.
    #[serde(skip)]
    pub response_headers: Vec<(String, String)>,
    /// The response's body, if it was kept.
    #[serde(skip)]
    pub body: Option<Body>,
}

/// A response's body, decompressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Body {
    /// The body as text or in base64.
    pub text: String,
    /// Whether the text is in base64.
    pub is_base64: bool,
}

impl Body {
    /// The length in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        // Four characters encode three bytes; padding encodes none.
        if self.is_base64 { self.text.trim_end_matches('=').len() * 3 / 4 } else { self.text.len() }
    }
}

/// The times of a request's phases, in milliseconds of the Unix epoch. A phase that did not happen or is unknown is
/// absent: a request on an existing connection has no `connect`. The first request may have none, either, because
/// Chromium opens a connection ahead of it. In Firefox, a `connect` phase is that of the connection opened for the
/// request, even if the request then left on another one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moments {
    /// The page asks for the resource.
    pub start: f64,
    /// The name lookup.
    pub dns: Option<(f64, f64)>,
    /// Connecting, TLS included.
    pub connect: Option<(f64, f64)>,
    /// The handshake of TLS or QUIC, within `connect`.
    pub tls: Option<(f64, f64)>,
    /// The request leaves the browser.
    pub request: Option<f64>,
    /// The response begins.
    pub response: Option<f64>,
    /// The response is complete, or given up.
    pub end: Option<f64>,
}

impl Moments {
    /// The time in milliseconds that the request waited in the browser: everything before its departure except lookup
    /// and connecting.
    #[must_use]
    pub fn queue(&self) -> Option<f64> {
        let known = length(self.dns).unwrap_or(0.0) + length(self.connect).unwrap_or(0.0);
        self.request.map(|request| (request - self.start - known).max(0.0))
    }

    /// From the request's departure to the response's start, in milliseconds.
    #[must_use]
    pub fn wait(&self) -> Option<f64> {
        Some((self.response? - self.request?).max(0.0))
    }

    /// From the response's start to its end, in milliseconds.
    #[must_use]
    pub fn receive(&self) -> Option<f64> {
        Some((self.end? - self.response?).max(0.0))
    }

    /// The moments relative to `zero`.
    #[must_use]
    pub fn since(&self, zero: f64) -> Self {
        let both = |span: Option<(f64, f64)>| span.map(|(from, to)| (from - zero, to - zero));
        let one = |moment: Option<f64>| moment.map(|moment| moment - zero);
        Self {
            start: self.start - zero,
            dns: both(self.dns),
            connect: both(self.connect),
            tls: both(self.tls),
            request: one(self.request),
            response: one(self.response),
            end: one(self.end),
        }
    }
}

/// The bytes of a request line and header in HTTP/1.1 (RFC 9112, sections 3 and 5). Fields whose names begin with a
/// colon replace the request line and `host` in later versions (RFC 9113, section 8.3.1).
pub(crate) fn written(method: &str, url: &str, fields: &[(String, String)]) -> Option<u64> {
    const AROUND_A_LINE: usize = " ".len() + " HTTP/1.1\r\n".len();
    const AROUND_A_FIELD: usize = ": ".len() + "\r\n".len();
    let url = url::Url::parse(url).ok()?;
    let target = url.path().len() + url.query().map_or(0, |query| "?".len() + query.len());
    let own = fields.iter().filter(|(name, _)| !name.starts_with(':'));
    let host = match fields.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
        true => 0,
        false => "host".len() + url.authority().len() + AROUND_A_FIELD,
    };
    let all: usize = own.map(|(name, value)| name.len() + value.len() + AROUND_A_FIELD).sum();
    Some((method.len() + target + AROUND_A_LINE + host + all + "\r\n".len()) as u64)
}

/// The length of a phase in milliseconds.
pub(crate) fn length(span: Option<(f64, f64)>) -> Option<f64> {
    span.map(|(from, to)| (to - from).max(0.0))
}

/// Serialised as lengths in milliseconds; `start` and `end` are relative to the zero of the moments.
impl Serialize for Moments {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        json!({
            "start_ms": round(Some(self.start)),
            "end_ms": round(self.end),
            "queue_ms": round(self.queue()),
            "dns_ms": round(length(self.dns)),
            "connect_ms": round(length(self.connect)),
            "tls_ms": round(length(self.tls)),
            "wait_ms": round(self.wait()),
            "receive_ms": round(self.receive()),
        })
        .serialize(serializer)
    }
}

/// Rounds to microseconds, which are finer than any browser's clock.
fn round(milliseconds: Option<f64>) -> Option<f64> {
    milliseconds.map(|value| (value * 1000.0).round() / 1000.0)
}

impl Resource {
    /// A request for this address; `None` if it never leaves the browser (`data:` and the like).
    #[must_use]
    pub(crate) fn asked(url: &str, method: &str, start: f64) -> Option<Self> {
        let mut parsed = url::Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
        parsed.set_fragment(None);
        let host = format!("{}:{}", parsed.host_str()?, parsed.port_or_known_default()?);
        let moments = Moments { start, ..Moments::default() };
        Some(Self { url: parsed.into(), host, method: method.to_owned(), moments, ..Self::default() })
    }

    /// Whether a response with any status arrived.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.status.is_some()
    }
}

/// A text field of a browser's report; `None` if it is empty.
pub(crate) fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_before_a_request_and_not_more_exactly_known_is_the_queue() {
        let moments = Moments {
            start: 100.0,
            dns: Some((103.0, 104.0)),
            connect: Some((105.0, 125.0)),
            tls: Some((112.0, 125.0)),
            request: Some(126.0),
            response: Some(146.0),
            end: Some(150.0),
        };
        assert_eq!(moments.queue(), Some(5.0));
        assert_eq!((moments.wait(), moments.receive()), (Some(20.0), Some(4.0)));
        assert_eq!(moments.since(100.0).request, Some(26.0));
        assert_eq!(Moments::default().wait(), None, "what is not known is not 0");
    }

    #[test]
    fn a_header_is_counted_as_http_1_writes_it_whichever_version_carried_it() {
        let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let text = "GET /a?b=1 HTTP/1.1\r\nHost: localhost:8443\r\nAccept: */*\r\n\r\n";
        let url = "https://localhost:8443/a?b=1";
        let first = [field("Host", "localhost:8443"), field("Accept", "*/*")];
        assert_eq!(written("GET", url, &first), Some(text.len() as u64));
        let second = [
            field(":method", "GET"),
            field(":authority", "localhost:8443"),
            field(":path", "/a?b=1"),
            field("accept", "*/*"),
        ];
        assert_eq!(written("GET", url, &second), Some(text.len() as u64));
    }

    #[test]
    fn what_never_leaves_the_browser_is_no_request() {
        assert_eq!(Resource::asked("data:image/png;base64,AA==", "GET", 0.0), None);
        assert_eq!(Resource::asked("blob:https://localhost/1", "GET", 0.0), None);
        let asked = Resource::asked("https://localhost/a?b#c", "GET", 0.0).unwrap();
        assert_eq!((asked.url.as_str(), asked.host.as_str()), ("https://localhost/a?b", "localhost:443"));
    }
}
