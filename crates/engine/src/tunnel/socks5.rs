//! Tunnels by SOCKS version 5 (RFC 1928), with user and password (RFC 1929) or without.

use std::net::IpAddr;

use wirelab_contract::spec::ClientSpec;
use wirelab_contract::via::Proxy;

use super::{Read, Step};

const VERSION: u8 = 5;
/// Version of the exchange of user and password.
const SIGN_IN_VERSION: u8 = 1;

const NO_AUTHENTICATION: u8 = 0;
const USER_AND_PASSWORD: u8 = 2;
const NO_METHOD: u8 = 0xff;

const CONNECT: u8 = 1;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;

/// The messages, the same for every tunnel.
pub(super) struct Messages {
    greeting: Vec<u8>,
    sign_in: Option<Vec<u8>>,
    request: Vec<u8>,
    asks_for_name: bool,
}

/// Without the messages, which have the credentials.
impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Messages").field("asks_for_name", &self.asks_for_name).finish_non_exhaustive()
    }
}

impl Messages {
    /// Encodes the messages of a tunnel to the server of a spec.
    pub fn new(proxy: &Proxy, spec: &ClientSpec) -> Result<Self, String> {
        let mut sign_in = None;
        if let Some(credentials) = &proxy.credentials {
            let mut message = vec![SIGN_IN_VERSION];
            for (text, what) in [(&credentials.user, "user"), (&credentials.password, "password")] {
                let wrong = || format!("the {what} has {} bytes; SOCKS has 1 to 255 (RFC 1929)", text.len());
                let length = u8::try_from(text.len()).ok().filter(|length| *length > 0).ok_or_else(wrong)?;
                message.push(length);
                message.extend_from_slice(text.as_bytes());
            }
            sign_in = Some(message);
        }
        let greeting = match sign_in {
            Some(_) => vec![VERSION, 2, NO_AUTHENTICATION, USER_AND_PASSWORD],
            None => vec![VERSION, 1, NO_AUTHENTICATION],
        };
        let mut request = vec![VERSION, CONNECT, 0];
        let name = &spec.server_name;
        let address = proxy.server.or_else(|| name.parse().ok());
        match address {
            Some(IpAddr::V4(address)) => {
                request.push(IPV4);
                request.extend(address.octets());
            }
            Some(IpAddr::V6(address)) => {
                request.push(IPV6);
                request.extend(address.octets());
            }
            None => {
                let wrong = || format!("the server's name `{name}` has {} bytes; SOCKS has 1 to 255", name.len());
                request.push(NAME);
                request.push(u8::try_from(name.len()).ok().filter(|length| *length > 0).ok_or_else(wrong)?);
                request.extend_from_slice(name.as_bytes());
            }
        }
        request.extend(spec.port.to_be_bytes());
        Ok(Self { greeting, sign_in, request, asks_for_name: address.is_none() })
    }

    /// The message before the answer of a step.
    pub fn before(&self, step: Step) -> &[u8] {
        match step {
            Step::Method => &self.greeting,
            Step::SignIn => self.sign_in.as_deref().unwrap_or_default(),
            Step::Reply | Step::Connected => &self.request,
        }
    }

    /// Reads the answer of a step.
    pub fn read(&self, step: Step, bytes: &[u8]) -> Result<Read, String> {
        let version = if step == Step::SignIn { SIGN_IN_VERSION } else { VERSION };
        match bytes {
            [] => return Ok(Read::Incomplete),
            [b'H', ..] => return Err("its answer is HTTP, not SOCKS; try http://".to_owned()),
            [first, ..] if *first != version => {
                return Err(format!("its answer begins with the byte {first}, not {version}; is it a SOCKS 5 proxy?"));
            }
            [_] => return Ok(Read::Incomplete),
            _ => {}
        }
        match (step, bytes[1]) {
            (Step::Method, NO_AUTHENTICATION) => Ok(Read::Next(Step::Reply, 2)),
            (Step::Method, USER_AND_PASSWORD) if self.sign_in.is_some() => Ok(Read::Next(Step::SignIn, 2)),
            (Step::Method, NO_METHOD) if self.sign_in.is_some() => {
                Err("it accepts neither no authentication nor user and password, the only ones that wirelab has"
                    .to_owned())
            }
            (Step::Method, NO_METHOD) => {
                Err("it demands authentication; put user and password before its host, as in \
                 socks5h://{{env.PROXY_USER}}:{{env.PROXY_PASSWORD}}@HOST:PORT"
                    .to_owned())
            }
            (Step::Method, method) => Err(format!("it chose method {method} of authentication, which was not offered")),
            (Step::SignIn, 0) => Ok(Read::Next(Step::Reply, 2)),
            (Step::SignIn, status) => Err(format!("it does not accept this user and password (status {status})")),
            (_, 0) => reply(bytes),
            (_, code) => Err(self.refused(code)),
        }
    }

    /// The refusal and its remedy.
    fn refused(&self, code: u8) -> String {
        let (what, remedy) = match code {
            1 => ("a failure", "its log may say why"),
            2 => ("its rules forbid it", "allow this host and port there"),
            3 => ("the network is unreachable", "does the server exist, seen from the proxy?"),
            4 => ("the host is unreachable", "does the server exist, seen from the proxy?"),
            5 => ("the server refused the connection", "does the server listen there, seen from the proxy?"),
            6 => ("the server did not answer in time", "does the server exist, seen from the proxy?"),
            7 => ("it has no command CONNECT", "use another proxy"),
            8 if self.asks_for_name => ("it looks up no names", "try socks5://, which looks the name up here"),
            8 => ("it lacks this kind of address", "try an address of the other version of IP"),
            _ => ("an unknown reason", "its log may say why"),
        };
        format!("{what} (reply {code}); {remedy}")
    }
}

/// Reads the rest of a successful reply: an address, which does not matter.
fn reply(bytes: &[u8]) -> Result<Read, String> {
    /// Version, reply, a reserved byte, and the kind of address.
    const BEGINNING: usize = 4;
    const PORT: usize = 2;
    let address = match (bytes.get(3), bytes.get(4)) {
        (None, _) => return Ok(Read::Incomplete),
        (Some(&IPV4), _) => 4,
        (Some(&IPV6), _) => 16,
        (Some(&NAME), None) => return Ok(Read::Incomplete),
        (Some(&NAME), Some(length)) => 1 + usize::from(*length),
        (Some(kind), _) => return Err(format!("its reply has an address of the unknown kind {kind}")),
    };
    let size = BEGINNING + address + PORT;
    Ok(if bytes.len() < size { Read::Incomplete } else { Read::Open(size) })
}
