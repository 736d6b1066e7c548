//! Tunnels by the method CONNECT of HTTP/1.1 (RFC 9110, section 9.3.6).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use httparse::{EMPTY_HEADER, Header, Response, Status};
use wirelab_contract::via::{Credentials, Proxy};

use super::{Read, Step};

/// Largest number of fields of an answer.
const FIELDS: usize = 128;

/// The request, the same for every tunnel.
pub(super) struct Messages {
    head: Vec<u8>,
    has_credentials: bool,
}

/// Without the head, which has the credentials.
impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("has_credentials", &self.has_credentials).finish_non_exhaustive()
    }
}

impl Messages {
    /// Encodes the request of a tunnel to `server`, a host with a port.
    pub fn new(proxy: &Proxy, server: &str) -> Result<Self, String> {
        if !server.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("the server's name `{server}` has characters that a request cannot have"));
        }
        let mut head = format!("CONNECT {server} HTTP/1.1\r\nhost: {server}\r\n");
        if let Some(Credentials { user, password }) = &proxy.credentials {
            if user.contains(':') {
                return Err("the user has a colon, which ends the user in `Basic` (RFC 7617)".to_owned());
            }
            let encoded = STANDARD.encode(format!("{user}:{password}"));
            head.push_str(&format!("proxy-authorization: Basic {encoded}\r\n"));
        }
        head.push_str("\r\n");
        Ok(Self { head: head.into_bytes(), has_credentials: proxy.credentials.is_some() })
    }

    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// Reads an answer. A body does not matter: a tunnel has none (RFC 9110, section 9.3.6), and a refusal ends the
    /// connection.
    pub fn read(&self, bytes: &[u8]) -> Result<Read, String> {
        let mut fields = [EMPTY_HEADER; FIELDS];
        let mut answer = Response::new(&mut fields);
        match answer.parse(bytes) {
            Ok(Status::Partial) => Ok(Read::Incomplete),
            Ok(Status::Complete(size)) => match answer.code.unwrap_or_default() {
                // 101 would switch to a protocol that was not asked for.
                100 | 102..=199 => Ok(Read::Next(Step::Connected, size)),
                200..=299 => Ok(Read::Open(size)),
                status => Err(self.refused(status, answer.headers)),
            },
            Err(httparse::Error::TooManyHeaders) => Err(format!("its answer has more than {FIELDS} fields")),
            Err(error) if bytes.first() == Some(&5) => {
                Err(format!("its answer is not HTTP ({error}), but that of a SOCKS proxy; try socks5://"))
            }
            Err(error) => Err(format!("its answer is not HTTP ({error}); is it a proxy for HTTP?")),
        }
    }

    /// The refusal and its remedy.
    fn refused(&self, status: u16, fields: &[Header<'_>]) -> String {
        let mut challenges = fields.iter().filter(|field| field.name.eq_ignore_ascii_case("proxy-authenticate"));
        let takes_basic = challenges.any(|field| {
            let words = field.value.split(|byte| matches!(byte, b' ' | b','));
            words.into_iter().any(|word| word.eq_ignore_ascii_case(b"basic"))
        });
        let what = match status {
            407 if !self.has_credentials => {
                "it demands a user and a password; put them before its host, as in \
                 http://{{env.PROXY_USER}}:{{env.PROXY_PASSWORD}}@HOST:PORT"
            }
            407 if !takes_basic => "it does not offer the authentication `Basic`, the only one that wirelab has",
            407 => "it does not accept this user and password",
            403 => "its rules forbid it; allow CONNECT to this host and port there (many proxies allow port 443 only)",
            400 | 404 | 405 | 501 => "is it a proxy, and does it allow CONNECT?",
            502..=504 => "it cannot reach the server; does the server listen there, seen from the proxy?",
            _ => "its log may say why",
        };
        format!("it answers with status {status}; {what}")
    }
}
