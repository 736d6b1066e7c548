//! The way of a client's connections to the server, if it is not direct.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The way of connections to the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Via {
    /// The Unix socket at this path, at which the server listens.
    UnixSocket(PathBuf),
    /// A proxy, which opens a tunnel to the server for each connection.
    Proxy(Proxy),
}

/// A proxy. The `address` of the spec is that of the proxy, its `port` is that of the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Proxy {
    /// The protocol between client and proxy.
    pub scheme: ProxyScheme,
    /// The name or address of the proxy, for messages.
    pub host: String,
    /// The port of the proxy.
    pub port: u16,
    /// The address to which the proxy connects. Absent: the proxy looks up `server_name`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<IpAddr>,
    /// User and password; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credentials: Option<Credentials>,
}

/// The protocol of a proxy, by the scheme of its URL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProxyScheme {
    /// The method CONNECT of HTTP/1.1 (RFC 9110, section 9.3.6).
    Http,
    /// SOCKS version 5 (RFC 1928); the client looks up the server's name.
    Socks5,
    /// SOCKS version 5; the proxy looks up the server's name.
    Socks5h,
}

/// User and password of a proxy. Its `Debug` shows neither.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Credentials {
    /// The user, with all values of placeholders.
    pub user: String,
    /// The password; it may be empty.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(hidden)")
    }
}

impl ProxyScheme {
    /// Every scheme.
    pub const ALL: [Self; 3] = [Self::Http, Self::Socks5, Self::Socks5h];

    /// The scheme in URLs.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Socks5 => "socks5",
            Self::Socks5h => "socks5h",
        }
    }
}

/// The URL, without user and password.
impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, host, port, .. } = self;
        let scheme = scheme.token();
        match host.contains(':') {
            true => write!(f, "{scheme}://[{host}]:{port}"),
            false => write!(f, "{scheme}://{host}:{port}"),
        }
    }
}

/// The way in words: `the Unix socket PATH`, `the proxy URL`.
impl fmt::Display for Via {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnixSocket(path) => write!(f, "the Unix socket {}", path.display()),
            Self::Proxy(proxy) => write!(f, "the proxy {proxy}"),
        }
    }
}

/// Why a path cannot be that of a Unix socket (unix(7)), or `None`.
#[must_use]
pub fn unfit_for_socket(path: &Path) -> Option<String> {
    /// The kernel's field has 108 bytes, the last of them is 0.
    const LONGEST: usize = 107;
    let length = path.as_os_str().len();
    let shown = path.display();
    match length {
        0 => Some("empty; give the path of the socket".to_owned()),
        1..=LONGEST => None,
        _ => Some(format!(
            "`{shown}`, a path of {length} bytes; Linux allows {LONGEST} for a Unix socket. Use a shorter one"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_a_message_nor_a_dump_shows_the_credentials() {
        let credentials = Some(Credentials { user: "ann".to_owned(), password: "s3cr3t".to_owned() });
        let proxy =
            Proxy { scheme: ProxyScheme::Socks5h, host: "::1".to_owned(), port: 1080, server: None, credentials };
        let via = Via::Proxy(proxy);
        assert_eq!(via.to_string(), "the proxy socks5h://[::1]:1080");
        let dump = format!("{via:?}");
        assert!(!dump.contains("ann") && !dump.contains("s3cr3t"), "{dump}");
    }

    #[test]
    fn a_path_of_107_bytes_is_the_longest_for_a_socket() {
        assert_eq!(unfit_for_socket(Path::new(&"a".repeat(107))), None);
        assert!(unfit_for_socket(Path::new(&"a".repeat(108))).unwrap().contains("108 bytes; Linux allows 107"));
        assert!(unfit_for_socket(Path::new("")).unwrap().contains("empty"));
    }

    #[test]
    fn a_way_is_an_object_with_one_key() {
        let text = r#"{"proxy":{"scheme":"http","host":"gate","port":3128}}"#;
        let via: Via = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&via).unwrap(), text);
        let socket = Via::UnixSocket("/run/api.sock".into());
        assert_eq!(serde_json::to_string(&socket).unwrap(), r#"{"unix_socket":"/run/api.sock"}"#);
    }
}
