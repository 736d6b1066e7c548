//! Calls of gRPC over HTTP/2: messages behind their lengths, and a status after the last one.

use std::borrow::Cow;
use std::iter::repeat_n;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::heron;
use wirelab_contract::mix::{Content, MixedRequest};
use wirelab_contract::spec::{ClientSpec, Request};

use super::status::refusal;
use crate::grpc::{PREFIX, frame};
use crate::payload::{self, Payload};
use crate::refusal::{Failure, Refusal};

/// The method that a request calls, with the answers that are right.
#[derive(Debug)]
pub(super) enum Call {
    /// A call of the service `heron`.
    Heron {
        number: f64,
        /// The only right answer; absent: the number has no root, and the server should refuse the call.
        answer: Option<Vec<u8>>,
    },
    /// A call of a user, whose answer may have any content.
    Own(Messages),
}

/// The number of messages of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Messages {
    /// One: the method does not stream its responses.
    One,
    /// A stream: of this number if it is known.
    Stream(Option<u64>),
}

impl Messages {
    /// Those of the answers to each request of a spec, in the order of [`prepare`](crate::requests::prepare).
    pub fn of(spec: &ClientSpec) -> Vec<Self> {
        if spec.mix.is_empty() {
            return vec![Self::One];
        }
        let of_request = |request: &MixedRequest| match &request.method {
            Some(method) if method.streams_response => Self::Stream(request.expect.messages),
            _ => Self::One,
        };
        spec.mix.iter().flat_map(|request| repeat_n(of_request(request), request.variants.len())).collect()
    }

    /// Judges the number of messages that arrived.
    fn judge(self, arrived: u64) -> Result<(), Failure> {
        let (wanted, fewer, more) = match self {
            Self::One => (1, ErrorKind::Protocol, ErrorKind::Protocol),
            Self::Stream(Some(wanted)) => (wanted, ErrorKind::Truncated, ErrorKind::Digest),
            Self::Stream(None) => return Ok(()),
        };
        if arrived == wanted {
            return Ok(());
        }
        let kind = if arrived < wanted { fewer } else { more };
        Err(Failure::new(kind, format!("the answer has {arrived} messages instead of {wanted}")))
    }
}

/// The request over HTTP/2 that makes the call of this spec; other protocols have their request already.
///
/// # Errors
///
/// [`Refusal`] if the path names no method, or the body is no message.
pub fn as_http(spec: &ClientSpec) -> Result<Cow<'_, ClientSpec>, Refusal> {
    if !spec.protocol.is_grpc() {
        return Ok(Cow::Borrowed(spec));
    }
    let (path, messages) = match heron::number(&spec.request.path) {
        Some(number) => (heron::METHOD.to_owned(), vec![heron_message(spec, number)?]),
        None => (spec.request.path.clone(), own_messages(&spec.request)?),
    };
    let mut framed = Vec::new();
    messages.iter().try_for_each(|message| frame(&mut framed, message))?;
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

fn own_messages(request: &Request) -> Result<Vec<Vec<u8>>, Refusal> {
    let Request { path, body_size, .. } = request;
    if !is_method(path) {
        return Err(Refusal::unsupported(format!(
            "the path `{path}`: gRPC supports `/heron/NUMBER`, or the name of a method as in `/package.Service/Method`"
        )));
    }
    if let Some(Content::Messages(messages)) = &request.body {
        let messages: Vec<_> = messages.iter().map(|message| payload::decoded(message)).collect::<Result<_, _>>()?;
        let size: usize = messages.iter().map(Vec::len).sum();
        return match size as u64 == *body_size {
            true => Ok(messages),
            false => Err(Refusal::failed(format!("the messages have {size} bytes, but `body_size` is {body_size}"))),
        };
    }
    match (Payload::of(request)?, body_size) {
        (Payload::Own(bytes), _) => Ok(vec![bytes.to_vec()]),
        (Payload::Pattern(_), 0) => Ok(vec![Vec::new()]),
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
    pub fn of(spec: &ClientSpec, messages: Messages) -> Option<Self> {
        if !spec.protocol.is_grpc() {
            return None;
        }
        let Some(number) = heron::number(&spec.request.path) else { return Some(Self::Own(messages)) };
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
        match self {
            Self::Heron { .. } => Messages::One.judge(reply.messages)?,
            Self::Own(messages) => messages.judge(reply.messages)?,
        }
        match self {
            Self::Heron { answer: Some(answer), .. } if !reply.differs && reply.size == answer.len() as u64 => {}
            Self::Heron { number, .. } => {
                let root = heron::root(*number);
                return fail(ErrorKind::Digest, format!("the answer to {number} is not the message that holds {root}"));
            }
            Self::Own(_) => {}
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
    messages: u64,
    /// Bytes of messages.
    size: u64,
    is_compressed: bool,
    /// Whether a byte is not that of the right answer.
    differs: bool,
}

impl Reply {
    /// Takes bytes of the body, and passes on what the answer is judged by: the message of wirelab's own service, or
    /// all of them for a call of the user, whose messages are found later.
    pub fn take(&mut self, call: &Call, mut bytes: &[u8], mut judged: impl FnMut(&[u8])) {
        let is_own = matches!(call, Call::Own(_));
        if is_own {
            judged(bytes);
        }
        while let Some(first) = bytes.first() {
            if self.left > 0 {
                let (now, later) = bytes.split_at(bytes.len().min(self.left as usize));
                self.differs |= !call.admits(self.size, now);
                self.left -= now.len() as u32;
                self.size += now.len() as u64;
                if !is_own {
                    judged(now);
                }
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
                self.messages += 1;
                self.prefix_bytes = 0;
            }
        }
    }
}
