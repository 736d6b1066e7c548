//! The protocol between client and proxy, without input or output: bytes in and bytes out, until the tunnel to the
//! server stands. After that, the proxy passes every byte on.

mod connect;
mod socks5;
#[cfg(test)]
mod tests;

use std::io;
use std::rc::Rc;

use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::spec::ClientSpec;
use wirelab_contract::via::{Proxy, ProxyScheme, Via};

use crate::refusal::{Failure, Refusal};

/// Limit of the bytes of a proxy's answers before the tunnel stands.
const LONGEST: usize = 16 * 1024;

/// What all tunnels through a proxy share: its name, and the messages to it.
#[derive(Debug)]
pub struct Tunnels {
    /// The URL of the proxy, without credentials.
    name: String,
    /// The server, as the proxy is asked for it.
    server: String,
    language: Language,
}

#[derive(Debug)]
enum Language {
    Connect(connect::Messages),
    Socks5(socks5::Messages),
}

/// What the bytes of an answer mean so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Read {
    /// More bytes are needed.
    Incomplete,
    /// An answer of this size, after which the client sends something or waits for another answer.
    Next(Step, usize),
    /// The last answer, of this size.
    Open(usize),
}

/// What the client waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The answer to CONNECT.
    Connected,
    /// The proxy's choice of a method of authentication.
    Method,
    /// The proxy's judgement of user and password.
    SignIn,
    /// The answer to the request of a connection.
    Reply,
}

/// One tunnel that is being opened.
#[derive(Debug)]
pub struct Tunnel {
    all: Rc<Tunnels>,
    /// `None` when the tunnel stands.
    awaited: Option<Step>,
    /// Bytes of the current message that were sent.
    sent: usize,
    /// The beginning of an incomplete answer.
    partial: Vec<u8>,
    /// Bytes of all answers so far.
    received: usize,
}

impl Tunnels {
    /// Prepares the messages to the proxy of a spec; `None` if connections do not go through a proxy.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the protocol of the proxy cannot express the server's name or the credentials.
    pub fn of(spec: &ClientSpec) -> Result<Option<Rc<Self>>, Refusal> {
        let Some(Via::Proxy(proxy)) = &spec.via else { return Ok(None) };
        let (name, server) = (proxy.to_string(), server(proxy, spec));
        let language = match proxy.scheme {
            ProxyScheme::Http => connect::Messages::new(proxy, &server).map(Language::Connect),
            ProxyScheme::Socks5 | ProxyScheme::Socks5h => socks5::Messages::new(proxy, spec).map(Language::Socks5),
        };
        let language = language.map_err(|why| Refusal::unsupported(format!("the proxy {name}: {why}")))?;
        Ok(Some(Rc::new(Self { name, server, language })))
    }

    /// The setting that a client reports: the URL of the proxy, without credentials.
    #[must_use]
    pub fn configured(&self) -> (String, serde_json::Value) {
        ("proxy".to_owned(), self.name.as_str().into())
    }

    /// The server in words: `NAME:443 through the proxy URL`.
    #[must_use]
    pub fn title(&self) -> String {
        format!("{} through the proxy {}", self.server, self.name)
    }

    /// The failure of a connection to the proxy itself.
    #[must_use]
    pub fn unreached(&self, why: &io::Error) -> Failure {
        let name = &self.name;
        Failure::new(ErrorKind::Proxy, format!("connecting to the proxy {name}: {why}; does the proxy run there?"))
    }

    fn failed(&self, why: &str) -> Failure {
        let Self { name, server, .. } = self;
        Failure::new(ErrorKind::Proxy, format!("the proxy {name} opened no tunnel to {server}: {why}"))
    }

    /// The message that comes before an answer.
    fn message(&self, step: Step) -> &[u8] {
        match &self.language {
            Language::Connect(messages) => messages.head(),
            Language::Socks5(messages) => messages.before(step),
        }
    }

    fn read(&self, step: Step, bytes: &[u8]) -> Result<Read, Failure> {
        let read = match &self.language {
            Language::Connect(messages) => messages.read(bytes),
            Language::Socks5(messages) => messages.read(step, bytes),
        };
        read.map_err(|why| self.failed(&why))
    }
}

impl Tunnel {
    /// A tunnel over a new connection to the proxy. The first message is its output.
    #[must_use]
    pub fn new(all: &Rc<Tunnels>) -> Self {
        let first = match all.language {
            Language::Connect(_) => Step::Connected,
            Language::Socks5(_) => Step::Method,
        };
        Self { all: Rc::clone(all), awaited: Some(first), sent: 0, partial: Vec::new(), received: 0 }
    }

    /// Whether the tunnel stands.
    #[must_use]
    pub const fn is_open(&self) -> bool {
        self.awaited.is_none()
    }

    /// Bytes to send to the proxy; empty if there are none.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.awaited.map_or(&[], |step| &self.all.message(step)[self.sent..])
    }

    /// Removes the first `count` bytes of the output, which were sent.
    pub const fn sent(&mut self, count: usize) {
        self.sent += count;
    }

    /// Takes bytes from the proxy. Returns how many of them it used: if the tunnel stands, the others are the server's.
    ///
    /// # Errors
    ///
    /// [`Failure`] of kind `proxy` if the proxy refused, or broke its protocol.
    pub fn receive(&mut self, bytes: &[u8]) -> Result<usize, Failure> {
        let mut used = 0;
        while let (Some(step), true) = (self.awaited, used < bytes.len()) {
            if !self.output().is_empty() {
                return Err(self.all.failed("it answered before it was asked; is it such a proxy?"));
            }
            let before = self.partial.len();
            let room = LONGEST - self.received;
            let rest = &bytes[used..];
            self.partial.extend_from_slice(&rest[..rest.len().min(room)]);
            let (size, next) = match self.all.read(step, &self.partial)? {
                Read::Incomplete if rest.len() >= room => {
                    return Err(self.all.failed(&format!("it sent {LONGEST} bytes without a complete answer")));
                }
                Read::Incomplete => {
                    self.received += rest.len();
                    return Ok(bytes.len());
                }
                Read::Next(next, size) => (size, Some(next)),
                Read::Open(size) => (size, None),
            };
            used += size - before;
            self.received += size - before;
            self.partial.clear();
            // An interim answer of HTTP is followed by another one, not by a message of the client.
            if next != Some(step) {
                self.sent = 0;
            }
            self.awaited = next;
        }
        Ok(used)
    }

    /// The failure of a proxy that closed the connection before the tunnel stood.
    #[must_use]
    pub fn ended(&self) -> Failure {
        let why = match (self.awaited, self.received) {
            (Some(Step::Connected | Step::Method), 0) => {
                "it closed the connection without an answer; is it such a proxy?"
            }
            (Some(Step::SignIn), _) => "it closed the connection after user and password, which it may not accept",
            _ => "it closed the connection within its answer",
        };
        self.all.failed(why)
    }

    /// The failure of a connection that broke before the tunnel stood.
    #[must_use]
    pub fn broke(&self, error: &io::Error) -> Failure {
        self.all.failed(&format!("the connection to it broke ({error})"))
    }

    /// What a connection waits for, in words.
    #[must_use]
    pub fn awaits(&self) -> String {
        let Tunnels { name, server, .. } = &*self.all;
        format!(
            "the proxy {name} opened no tunnel to {server} in time; is it such a proxy, and does it reach the server?"
        )
    }
}

/// Host and port of the server, as the proxy is asked for them.
fn server(proxy: &Proxy, spec: &ClientSpec) -> String {
    let host = proxy.server.map_or_else(|| spec.server_name.clone(), |address| address.to_string());
    match host.contains(':') {
        true => format!("[{host}]:{}", spec.port),
        false => format!("{host}:{}", spec.port),
    }
}
