//! The requests of HTTP/2, encoded once.

use wirelab_contract::spec::ClientSpec;

use super::call::{self, Call, Messages};
use super::fields::{encode_integer, encode_literal, encode_named};
use super::frame::{self, flag, kind, setting};
use super::windows::Windows;
use crate::http1;
use crate::payload::Payload;
use crate::refusal::Refusal;
use crate::requests::prepare;

/// hyper's defaults for clients, so that both clients of wirelab grant the same credit.
const DEFAULT: Windows = Windows { stream: 2 << 20, connection: 5 << 20 };

/// Credit of a connection before the first update.
pub(super) const FIRST_CREDIT: u32 = 65_535;

/// Indices of the static table (RFC 7541, appendix A).
const AUTHORITY: usize = 1;
const METHOD: usize = 2;
const PATH: usize = 4;

/// Indexed fields of that table.
const SCHEME_HTTP: u8 = 0x86;
const SCHEME_HTTPS: u8 = 0x87;

/// The encoded requests of a spec. Fields that all of them have are encoded once and enter the peer's table; the others
/// are sent literally.
#[derive(Debug)]
pub struct Encoded {
    /// The first bytes of a connection.
    pub(super) preface: Vec<u8>,
    shared: [Part; 3],
    requests: Vec<One>,
    /// Size of the table that the shared fields need.
    pub(super) table: u32,
    pub(super) windows: Windows,
}

/// How the shared fields are encoded.
#[derive(Debug, Clone, Copy)]
pub(super) enum Form {
    /// Literally.
    Plain,
    /// Literally, and they enter the peer's table.
    First,
    /// By their places in that table.
    Repeated,
}

/// A part of a block of fields. Pseudo-header fields precede all others (RFC 9113, section 8.3).
#[derive(Debug, Default)]
struct Part {
    pseudo: Vec<u8>,
    fields: Vec<u8>,
}

#[derive(Debug)]
struct One {
    own: Part,
    payload: Payload,
    /// The call of gRPC that it makes.
    call: Option<Call>,
    is_head: bool,
}

impl Encoded {
    /// Encodes the requests of the spec.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if a part of one is not valid, or a window does not exist in HTTP/2.
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let windows = Windows::of(&spec.transport, DEFAULT)?;
        let heads = prepare(spec, |one| Head::new(&*call::as_http(one)?))?;
        let first = &heads[0];
        let shared = Head {
            pseudo: retained(&first.pseudo, |field| heads.iter().all(|head| head.pseudo.contains(field))),
            // The order of fields with one name has a meaning, so all of them are shared, or none is.
            fields: retained(&first.fields, |(name, _)| {
                heads.iter().all(|head| head.values(name).eq(first.values(name)))
            }),
        };
        let entered = shared.entered();
        let table: usize = entered.iter().map(|size| size + 32).sum();
        let parts = [Form::Plain, Form::First, Form::Repeated].map(|form| {
            let mut part = Part::default();
            part.pseudo.push(if spec.protocol.is_secure() { SCHEME_HTTPS } else { SCHEME_HTTP });
            // The newest entry has the lowest index, 62.
            shared.encode(&mut part, form, 61 + entered.len());
            part
        });
        let payloads = prepare(spec, |one| Payload::of(&call::as_http(one)?.request))?;
        let mut messages = Messages::of(spec).into_iter();
        let calls = prepare(spec, |one| Ok(Call::of(one, messages.next().unwrap_or(Messages::One))))?;
        let requests = heads.iter().zip(payloads).zip(calls).map(|((head, payload), call)| {
            let own = Head {
                pseudo: retained(&head.pseudo, |field| !shared.pseudo.contains(field)),
                fields: retained(&head.fields, |(name, _)| shared.values(name).next().is_none()),
            };
            let mut part = Part::default();
            own.encode(&mut part, Form::Plain, 0);
            One { own: part, payload, call, is_head: head.method() == "HEAD" }
        });
        let requests = requests.collect();
        let table = u32::try_from(table).unwrap_or(u32::MAX);
        Ok(Self { preface: preface(windows), shared: parts, requests, table, windows })
    }

    /// The block of fields of a request, in pieces.
    pub(super) fn block<'a>(&'a self, number: usize, form: Form, prefix: &'a [u8]) -> [&'a [u8]; 5] {
        let (shared, own) = (&self.shared[form as usize], &self.requests[number].own);
        [prefix, &shared.pseudo, &own.pseudo, &shared.fields, &own.fields]
    }

    /// The body of a request.
    pub(super) fn payload(&self, number: usize) -> &Payload {
        &self.requests[number].payload
    }

    /// The call of gRPC that a request makes.
    pub(super) fn call(&self, number: usize) -> Option<&Call> {
        self.requests[number].call.as_ref()
    }

    /// Whether responses to a request have no body whatever they announce (RFC 9110, section 9.3.2).
    pub(super) fn is_head(&self, number: usize) -> bool {
        self.requests[number].is_head
    }
}

/// Fields of a request, without the scheme.
#[derive(Debug)]
pub(crate) struct Head {
    /// Index of the name in the static table, and value.
    pseudo: Vec<(usize, String)>,
    /// Name in lower case, and value.
    pub fields: Vec<(String, String)>,
}

impl Head {
    pub fn new(spec: &ClientSpec) -> Result<Self, Refusal> {
        let request = &spec.request;
        let authority = http1::checked_authority(spec)?;
        let mut fields = Vec::new();
        for (name, value) in &request.headers {
            // The authority has this value already (RFC 9113, section 8.3.1).
            if !name.eq_ignore_ascii_case("host") {
                fields.push((name.to_ascii_lowercase(), value.clone()));
            }
        }
        // gRPC frames its messages itself.
        if !spec.protocol.is_grpc()
            && http1::has_body(request)
            && !fields.iter().any(|(name, _)| name == "content-length")
        {
            fields.push(("content-length".to_owned(), request.body_size.to_string()));
        }
        let pseudo = vec![(METHOD, request.method.clone()), (PATH, request.path.clone()), (AUTHORITY, authority)];
        Ok(Self { pseudo, fields })
    }

    pub fn method(&self) -> &str {
        self.pseudo_field(METHOD)
    }

    pub fn path(&self) -> &str {
        self.pseudo_field(PATH)
    }

    pub fn authority(&self) -> &str {
        self.pseudo_field(AUTHORITY)
    }

    fn pseudo_field(&self, name: usize) -> &str {
        self.pseudo.iter().find(|field| field.0 == name).map_or("", |field| &field.1)
    }

    /// The values of a field in their order.
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a String> {
        self.fields.iter().filter(move |field| field.0 == name).map(|field| &field.1)
    }

    /// Sizes of names and values that enter a table.
    fn entered(&self) -> Vec<usize> {
        let pseudo = self.pseudo.iter().filter(|(name, value)| known(*name, value).is_none());
        let names = pseudo.map(|(name, value)| [10, 7, 0, 5][*name - 1] + value.len());
        names.chain(self.fields.iter().map(|(name, value)| name.len() + value.len())).collect()
    }

    /// Appends the fields; by their places in the table, the first field has the place `oldest`.
    fn encode(&self, part: &mut Part, form: Form, oldest: usize) {
        let mut places = (0..).map(|number| oldest - number);
        let mut place = |block: &mut Vec<u8>| {
            let place = places.next().unwrap_or_default();
            encode_integer(block, 0x80, 7, place);
        };
        let indexed = matches!(form, Form::First);
        for (name, value) in &self.pseudo {
            match (known(*name, value), form) {
                (Some(byte), _) => part.pseudo.push(byte),
                (None, Form::Repeated) => place(&mut part.pseudo),
                (None, _) => encode_named(&mut part.pseudo, indexed, *name, value.as_bytes()),
            }
        }
        for (name, value) in &self.fields {
            match form {
                Form::Repeated => place(&mut part.fields),
                _ => encode_literal(&mut part.fields, indexed, name.as_bytes(), value.as_bytes()),
            }
        }
    }
}

fn retained<T: Clone>(fields: &[T], keeps: impl Fn(&T) -> bool) -> Vec<T> {
    fields.iter().filter(|field| keeps(field)).cloned().collect()
}

/// The byte for a field that the static table has.
fn known(name: usize, value: &str) -> Option<u8> {
    match (name, value) {
        (METHOD, "GET") => Some(0x82),
        (METHOD, "POST") => Some(0x83),
        (PATH, "/") => Some(0x84),
        _ => None,
    }
}

/// The preface, the settings and the credit of a connection.
fn preface(windows: Windows) -> Vec<u8> {
    let mut out = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    frame::head(&mut out, 12, kind::SETTINGS, 0, 0);
    frame::set(&mut out, setting::ENABLE_PUSH, 0);
    frame::set(&mut out, setting::INITIAL_WINDOW_SIZE, windows.stream);
    if windows.connection > FIRST_CREDIT {
        frame::with_number(&mut out, kind::WINDOW_UPDATE, 0, windows.connection - FIRST_CREDIT);
    }
    out
}

/// Appends the frames of a block of fields.
pub(super) fn headers(out: &mut Vec<u8>, block: &[&[u8]], largest: usize, stream: u32, ends: bool) {
    let size = block.iter().map(|piece| piece.len()).sum();
    let mut kind = kind::HEADERS;
    let mut flags = if ends { flag::END_STREAM } else { 0 };
    if size <= largest {
        frame::head(out, size, kind, flags | flag::END_HEADERS, stream);
        return block.iter().for_each(|piece| out.extend_from_slice(piece));
    }
    let block = block.concat();
    let mut pieces = block.chunks(largest).peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            flags |= flag::END_HEADERS;
        }
        frame::head(out, piece.len(), kind, flags, stream);
        out.extend_from_slice(piece);
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}
