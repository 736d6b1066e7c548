//! What HTTP/1.1 and HTTP/2 clients have in common: the request, made once and copied cheaply, and its body.

use std::convert::Infallible;
use std::net::Ipv6Addr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};
use hyper::body::{Body, Frame, SizeHint};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::ClientSpec;

use crate::payload;
use crate::refusal::Refusal;

/// The request of a spec.
#[derive(Debug)]
pub(crate) struct Recipe {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body_size: u64,
}

impl Recipe {
    /// The request of the spec. HTTP/1.1 names the host in a field, later versions in the URI.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let request = &spec.request;
        let invalid = |what: &str, text: &str| Refusal::failed(format!("`{text}` is not a valid {what}"));
        let method =
            Method::from_bytes(request.method.as_bytes()).map_err(|_| invalid("HTTP method", &request.method))?;
        let own_host = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let authority = own_host.map_or_else(|| authority(spec), |(_, host)| host.clone());
        let mut headers = HeaderMap::new();
        let uri = if matches!(spec.protocol, Protocol::H1 | Protocol::H1c) {
            let host = HeaderValue::from_str(&authority).map_err(|_| invalid("server name", &spec.server_name))?;
            headers.insert(HOST, host);
            request.path.parse()
        } else {
            let scheme = if spec.protocol.is_secure() { "https" } else { "http" };
            format!("{scheme}://{authority}{}", request.path).parse()
        };
        let uri: Uri = uri.map_err(|_| invalid("path", &request.path))?;
        if !request.path.starts_with('/') {
            return Err(invalid("path, which begins with a slash", &request.path));
        }
        for (name, value) in &request.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid("name of a header field", name))?;
            let value = HeaderValue::from_str(value).map_err(|_| invalid("value of a header field", value))?;
            // It is the authority already: two names for one host would contradict each other (RFC 9113, section 8.3.1).
            if name != HOST {
                headers.append(name, value);
            }
        }
        Ok(Self { method, uri, headers, body_size: request.body_size })
    }

    /// A copy to send.
    pub fn request(&self) -> Request<PatternBody> {
        let mut request = Request::new(PatternBody::new(self.body_size));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        if !self.headers.is_empty() {
            *request.headers_mut() = self.headers.clone();
        }
        request
    }
}

/// Name and port of the server, as RFC 3986, section 3.2, writes them: IPv6 addresses in brackets, no default port.
fn authority(spec: &ClientSpec) -> String {
    let name = &spec.server_name;
    let name = if name.parse::<Ipv6Addr>().is_ok() { format!("[{name}]") } else { name.clone() };
    let default_port = if spec.protocol.is_secure() { 443 } else { 80 };
    if spec.port == default_port { name } else { format!("{name}:{}", spec.port) }
}

/// The request of a spec without its body.
pub(crate) fn head(spec: &ClientSpec) -> Result<Request<()>, Refusal> {
    Recipe::new(spec).map(|recipe| recipe.request().map(|_| ()))
}

/// So many bytes of the pattern, in slices of one buffer.
#[derive(Debug)]
pub(crate) struct PatternBody {
    offset: u64,
    left: u64,
}

impl PatternBody {
    /// The first `size` bytes.
    pub const fn new(size: u64) -> Self {
        Self { offset: 0, left: size }
    }
}

impl Body for PatternBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.left == 0 {
            return Poll::Ready(None);
        }
        let piece = payload::piece(self.offset, self.left);
        self.offset += piece.len() as u64;
        self.left -= piece.len() as u64;
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
