//! The request of HTTP clients, created once and copied cheaply.

use std::net::Ipv6Addr;

use http::header::{CONTENT_LENGTH, HOST, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Uri};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::ClientSpec;

use crate::payload::Payload;
use crate::refusal::Refusal;

/// The request of a spec.
#[derive(Debug)]
pub struct Recipe {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    payload: Payload,
}

impl Recipe {
    /// Creates the request of the spec. HTTP/1.1 names the host in a field, later versions in the URI.
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
            // The message does not repeat the value, which may be a secret.
            let value = HeaderValue::from_str(value)
                .map_err(|_| Refusal::failed(format!("the value of the header field `{name}` is not valid")))?;
            // The authority already has this value: two names for one host would contradict each other (RFC 9113,
            // section 8.3.1).
            if name != HOST {
                headers.append(name, value);
            }
        }
        Ok(Self { method, uri, headers, payload: Payload::of(request)? })
    }

    /// Copies the request for sending, without its body.
    #[must_use]
    pub fn head(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        if !self.headers.is_empty() {
            *request.headers_mut() = self.headers.clone();
        }
        request
    }

    /// Like [`Self::head`], with the length of the body, if it has or could have one. hyper adds this field itself;
    /// other libraries add no fields, and compared cells must send the same fields.
    #[must_use]
    pub fn head_with_length(&self) -> Request<()> {
        let mut head = self.head();
        if self.body_size() > 0 || matches!(*head.method(), Method::POST | Method::PUT | Method::PATCH) {
            head.headers_mut().entry(CONTENT_LENGTH).or_insert(self.body_size().into());
        }
        head
    }

    /// Size of its body in bytes.
    #[must_use]
    pub const fn body_size(&self) -> u64 {
        self.payload.size()
    }

    /// Its body.
    #[must_use]
    pub const fn payload(&self) -> &Payload {
        &self.payload
    }
}

/// Name and port of the server (RFC 3986, section 3.2): IPv6 addresses in brackets, no default port.
fn authority(spec: &ClientSpec) -> String {
    let name = &spec.server_name;
    let name = if name.parse::<Ipv6Addr>().is_ok() { format!("[{name}]") } else { name.clone() };
    let default_port = if spec.protocol.is_secure() { 443 } else { 80 };
    if spec.port == default_port { name } else { format!("{name}:{}", spec.port) }
}
