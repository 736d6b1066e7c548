//! A request, encoded once.

use std::net::Ipv6Addr;

use wirelab_contract::spec::{ClientSpec, Request};

use crate::payload::{Headed, Payload};
use crate::refusal::Refusal;

/// An encoded request.
#[derive(Debug)]
pub struct Encoded {
    message: Headed,
    is_head: bool,
}

impl Encoded {
    /// Encodes the request of the spec.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a part of it is not valid.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let request = &spec.request;
        let host = checked_authority(spec)?;
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {host}\r\n", request.method, request.path);
        let mut has_length = false;
        for (name, value) in &request.headers {
            if !name.eq_ignore_ascii_case("host") {
                has_length |= name.eq_ignore_ascii_case("content-length");
                head.push_str(&format!("{}: {value}\r\n", name.to_ascii_lowercase()));
            }
        }
        if has_body(request) && !has_length {
            head.push_str(&format!("content-length: {}\r\n", request.body_size));
        }
        head.push_str("\r\n");
        let message = Headed::new(head.into_bytes(), Payload::of(request)?);
        Ok(Self { message, is_head: request.method == "HEAD" })
    }

    /// Size in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.message.size()
    }

    /// Bytes from this offset on, not necessarily all.
    #[must_use]
    pub fn from(&self, offset: u64) -> &[u8] {
        self.message.from(offset)
    }

    /// Whether responses have no body whatever they announce (RFC 9110, section 9.3.2).
    #[must_use]
    pub const fn has_no_response_body(&self) -> bool {
        self.is_head
    }
}

/// Whether a request says how long its body is.
pub(crate) fn has_body(request: &Request) -> bool {
    request.body_size > 0 || ["POST", "PUT", "PATCH"].contains(&request.method.as_str())
}

/// The authority of a request, all of whose parts are valid: its own field `host`, or name and port of the server.
pub(crate) fn checked_authority(spec: &ClientSpec) -> Result<String, Refusal> {
    let request = &spec.request;
    check(request)?;
    let own_host = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
    let host = own_host.map_or_else(|| authority(spec), |(_, host)| host.clone());
    if is_value(&host) { Ok(host) } else { Err(invalid("server name", &spec.server_name)) }
}

/// Checks what would end a field or a line early, or be another request.
fn check(request: &Request) -> Result<(), Refusal> {
    if request.method.is_empty() || !request.method.bytes().all(is_token) {
        return Err(invalid("HTTP method", &request.method));
    }
    let is_path = |byte: u8| byte.is_ascii_graphic() || byte >= 0x80;
    if !request.path.starts_with('/') || !request.path.bytes().all(is_path) {
        return Err(invalid("path, which begins with a slash", &request.path));
    }
    for (name, value) in &request.headers {
        if name.is_empty() || !name.bytes().all(is_token) {
            return Err(invalid("name of a header field", name));
        }
        if !is_value(value) {
            // The message does not repeat the value, which may be a secret.
            return Err(Refusal::failed(format!("the value of the header field `{name}` is not valid")));
        }
    }
    Ok(())
}

/// RFC 9110, section 5.6.2.
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// RFC 9110, section 5.5.
fn is_value(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

fn invalid(what: &str, text: &str) -> Refusal {
    Refusal::failed(format!("`{text}` is not a valid {what}"))
}

/// Name and port of the server (RFC 3986, section 3.2): IPv6 addresses in brackets, no default port.
fn authority(spec: &ClientSpec) -> String {
    let name = &spec.server_name;
    let name = if name.parse::<Ipv6Addr>().is_ok() { format!("[{name}]") } else { name.clone() };
    let default_port = if spec.protocol.is_secure() { 443 } else { 80 };
    if spec.port == default_port { name } else { format!("{name}:{}", spec.port) }
}
