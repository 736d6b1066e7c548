//! Calls of gRPC over HTTP/2: messages behind their lengths, and a status after the last one.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::heron;
use wirelab_contract::mix::Content;
use wirelab_contract::spec::{ClientSpec, Request};

use super::status::refusal;
use crate::payload::Payload;
use crate::refusal::{Failure, Refusal};

/// Size of what precedes a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// A unary call.
#[derive(Debug)]
pub(super) enum Call {
    /// A call of the service `heron`.
    Heron {
        number: f64,
        /// The only right answer; absent: the number has no root, and the server should refuse the call.
        answer: Option<Vec<u8>>,
    },
    /// A call of a user, whose answer may be any message.
    Own,
}

/// The request over HTTP/2 that makes the call of this spec; other protocols have their request already.
pub(super) fn as_http(spec: &ClientSpec) -> Result<Cow<'_, ClientSpec>, Refusal> {
    if !spec.protocol.is_grpc() {
        return Ok(Cow::Borrowed(spec));
    }
    let (path, message) = match heron::number(&spec.request.path) {
        Some(number) => (heron::METHOD.to_owned(), heron_message(spec, number)?),
        None => (spec.request.path.clone(), own_message(&spec.request)?),
    };
    let length = u32::try_from(message.len()).map_err(|_| Refusal::unsupported("a message of 4 GiB or more"))?;
    let framed = [&[0][..], &length.to_be_bytes(), &message].concat();
    let mut spec = spec.clone();
    let request = &mut spec.request;
    request.method = "POST".to_owned();
    request.path = path;
    request.body_size = framed.len() as u64;
    request.body = Some(Content::Base64(STANDARD.encode(framed)));
    // Another type of content is that of the message alone.
    let is_kept = |name: &str, value: &str| match name.to_ascii_lowercase().as_str() {
        "te" => false,
        "content-type" => value.starts_with("application/grpc"),
        _ => true,
    };
    request.headers.retain(|(name, value)| is_kept(name, value));
    for (name, value) in [("te", "trailers"), ("content-type", "application/grpc")] {
        if !request.headers.iter().any(|field| field.0.eq_ignore_ascii_case(name)) {
            request.headers.push((name.to_owned(), value.to_owned()));
        }
    }
    Ok(Cow::Owned(spec))
}

fn heron_message(spec: &ClientSpec, number: f64) -> Result<Vec<u8>, Refusal> {
    let (message, asked) = (heron::request(spec.protocol, number), spec.request.body_size);
    if asked != message.len() as u64 {
        let size = message.len();
        let why = format!("`body_size` is {asked}; the message that holds {number} has {size} bytes");
        return Err(Refusal::unsupported(why));
    }
    Ok(message)
}

fn own_message(request: &Request) -> Result<Vec<u8>, Refusal> {
    let Request { path, body_size, .. } = request;
    if !is_method(path) {
        return Err(Refusal::unsupported(format!(
            "the path `{path}`: gRPC supports `/heron/NUMBER`, or the name of a method as in `/package.Service/Method`"
        )));
    }
    match (Payload::of(request)?, body_size) {
        (Payload::Own(bytes), _) => Ok(bytes.to_vec()),
        (Payload::Pattern(_), 0) => Ok(Vec::new()),
        (Payload::Pattern(_), size) => Err(Refusal::unsupported(format!(
            "`body_size` is {size} without `body`; a generated body is no message, so a call of gRPC needs its own"
        ))),
    }
}

/// Whether a path names a method. A name without a dot or a capital letter is that of a resource, such as `/bytes/10`.
fn is_method(path: &str) -> bool {
    let parts: Vec<_> = path.split('/').collect();
    let ["", service, method] = parts[..] else { return false };
    !method.is_empty() && service.contains(|c: char| c == '.' || c.is_ascii_uppercase())
}

impl Call {
    /// The call of a spec; `None` without gRPC.
    pub fn of(spec: &ClientSpec) -> Option<Self> {
        if !spec.protocol.is_grpc() {
            return None;
        }
        let Some(number) = heron::number(&spec.request.path) else { return Some(Self::Own) };
        let answer = (!heron::root(number).is_nan()).then(|| heron::answer(spec.protocol, number));
        Some(Self::Heron { number, answer })
    }

    /// Judges a complete reply, with its `grpc-message` if it has one. Returns the size of its message in bytes.
    pub fn judge(&self, http_status: Option<u16>, reply: &Reply, reason: &[u8]) -> Result<u64, Failure> {
        let fail = |kind, message: String| Err(Failure::new(kind, message));
        if let Some(status) = http_status.filter(|status| *status != 200) {
            return fail(ErrorKind::Status, format!("the server answered with the HTTP status {status}"));
        }
        match reply.status {
            Some(0) => {}
            Some(status) => {
                let reason = if reply.has_message { reason } else { &[] };
                return fail(ErrorKind::Status, refusal(status, reason));
            }
            None => return fail(ErrorKind::Protocol, "the response ended without `grpc-status`".to_owned()),
        }
        if reply.is_compressed {
            return fail(ErrorKind::Protocol, "the answer is compressed, which the call did not allow".to_owned());
        }
        if reply.prefix_bytes != 0 || reply.left != 0 {
            return fail(ErrorKind::Protocol, "the answer ended within a message".to_owned());
        }
        if reply.messages != 1 {
            let messages = reply.messages;
            return fail(ErrorKind::Protocol, format!("the answer has {messages} messages instead of 1"));
        }
        match self {
            Self::Heron { answer: Some(answer), .. } if !reply.differs && reply.size == answer.len() as u64 => {}
            Self::Heron { number, .. } => {
                let root = heron::root(*number);
                return fail(ErrorKind::Digest, format!("the answer to {number} is not the message that holds {root}"));
            }
            Self::Own => {}
        }
        Ok(reply.size)
    }

    /// Whether these bytes of the answer, from `offset` on, are right.
    fn admits(&self, offset: u64, bytes: &[u8]) -> bool {
        let Self::Heron { answer, .. } = self else { return true };
        let answer = answer.as_deref().unwrap_or_default();
        usize::try_from(offset).ok().and_then(|at| answer.get(at..at + bytes.len())) == Some(bytes)
    }
}

/// The part of a reply to a call that has arrived.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Reply {
    /// `grpc-status` of the last block of fields.
    pub status: Option<u32>,
    /// Whether this block has `grpc-message`, too.
    pub has_message: bool,
    prefix: [u8; PREFIX],
    /// Bytes of an incomplete prefix.
    prefix_bytes: usize,
    /// Bytes to come of the current message.
    left: u32,
    /// Messages that began.
    messages: u32,
    /// Bytes of messages.
    size: u64,
    is_compressed: bool,
    /// Whether a byte is not that of the right answer.
    differs: bool,
}

impl Reply {
    /// Takes bytes of the body, and passes those of messages on.
    pub fn take(&mut self, call: &Call, mut bytes: &[u8], mut message: impl FnMut(&[u8])) {
        while let Some(first) = bytes.first() {
            if self.left > 0 {
                let (now, later) = bytes.split_at(bytes.len().min(self.left as usize));
                self.differs |= !call.admits(self.size, now);
                self.left -= now.len() as u32;
                self.size += now.len() as u64;
                message(now);
                bytes = later;
                continue;
            }
            self.prefix[self.prefix_bytes] = *first;
            self.prefix_bytes += 1;
            bytes = &bytes[1..];
            if self.prefix_bytes == PREFIX {
                let [flag, length @ ..] = self.prefix;
                self.is_compressed |= flag != 0;
                self.left = u32::from_be_bytes(length);
                self.messages = self.messages.saturating_add(1);
                self.prefix_bytes = 0;
            }
        }
    }
}
