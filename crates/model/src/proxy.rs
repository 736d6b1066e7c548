//! The URL of a proxy, as users write it.

use std::borrow::Cow;
use std::fmt;
use std::net::Ipv6Addr;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::nearest::nearest;
use crate::site::is_near;
use crate::via::ProxyScheme;

/// A proxy: `http://HOST:PORT`, `socks5://HOST:PORT` or `socks5h://HOST:PORT`, with `USER:PASSWORD@` before the host if
/// it demands them. In these two, `{{env.NAME}}` stands for an environment variable and `{{file.PATH}}` for the text of
/// a file, and any other character may be percent-encoded.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct ProxyUrl {
    /// The protocol.
    pub scheme: ProxyScheme,
    /// User and password as written, but without percent-encoding.
    pub sign_in: Option<SignIn>,
    /// The host: a name, or an address without brackets.
    pub host: String,
    /// The port at which the proxy listens; not 0.
    pub port: u16,
}

/// User and password as written.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct SignIn {
    /// The user as written, with placeholders.
    pub user: String,
    /// The password as written, with placeholders; empty without one.
    pub password: String,
}

/// Why a text is no URL of a proxy. Its message has neither user nor password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotProxy {
    /// The text without user and password.
    shown: String,
    why: &'static str,
    meant: Option<&'static str>,
}

impl fmt::Display for NotProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shown, why, meant } = self;
        write!(f, "`{shown}` is no URL of a proxy: {why}")?;
        if let Some(meant) = meant {
            write!(f, "; did you mean `{meant}`?")?;
        }
        f.write_str(
            ". Write http://HOST:PORT (CONNECT), socks5://HOST:PORT, or socks5h://HOST:PORT (looks up names itself)",
        )
    }
}

impl std::error::Error for NotProxy {}

impl ProxyUrl {
    /// Whether the password, if any, is given by placeholders only, so that the text is no secret.
    #[must_use]
    pub fn hides_password(&self) -> bool {
        self.sign_in.as_ref().is_none_or(|SignIn { password, .. }| {
            let is_placeholder = (password.starts_with("{{env.") || password.starts_with("{{file."))
                && password.ends_with("}}")
                && password.matches("{{").count() == 1;
            password.is_empty() || is_placeholder
        })
    }

    /// Whether it is known, without a look-up of its name, to be on this machine or in a private network.
    #[must_use]
    pub fn is_near(&self) -> bool {
        self.host == "localhost" || self.host.parse().is_ok_and(is_near)
    }

    /// The URL without user and password.
    #[must_use]
    pub fn shown(&self) -> String {
        Self { sign_in: None, ..self.clone() }.to_string()
    }
}

impl FromStr for ProxyUrl {
    type Err = NotProxy;

    fn from_str(text: &str) -> Result<Self, NotProxy> {
        let (scheme_text, rest) = text.split_once("://").unwrap_or(("", text));
        let (sign_in, place) = match rest.rsplit_once('@') {
            Some((sign_in, place)) => (Some(sign_in), place),
            None => (None, rest),
        };
        let shown = if text.contains("://") { format!("{scheme_text}://{place}") } else { place.to_owned() };
        let wrong = |why, meant| NotProxy { shown: shown.clone(), why, meant };
        let schemes = || ProxyScheme::ALL.iter().map(|scheme| scheme.token());
        let scheme = ProxyScheme::ALL.into_iter().find(|scheme| scheme.token() == scheme_text);
        let scheme = scheme.ok_or_else(|| match scheme_text {
            "" => wrong("it has no scheme", None),
            "https" => {
                wrong("wirelab does not speak TLS to proxies; https servers are reached through http:// as well", None)
            }
            other => wrong("its scheme is unknown", nearest(other, schemes())),
        })?;
        let place = place.strip_suffix('/').unwrap_or(place);
        if place.contains(['/', '?', '#']) {
            return Err(wrong("it has a path, which no proxy uses", None));
        }
        let bracketed = place.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let (host, port) = match bracketed {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => place.rsplit_once(':').map_or((place, None), |(host, port)| (host, Some(port))),
        };
        let port = port.ok_or_else(|| wrong("it has no port", None))?;
        let port = port.parse().ok().filter(|port| *port > 0);
        let port = port.ok_or_else(|| wrong("its port is no number from 1 to 65535", None))?;
        let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
        let is_valid = match bracketed {
            Some(_) => host.parse::<Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_of_name),
        };
        if !is_valid {
            return Err(wrong("it has no valid host", None));
        }
        let sign_in = match sign_in.map(|sign_in| sign_in.split_once(':').unwrap_or((sign_in, ""))) {
            None => None,
            Some((user, password)) => {
                let decode = |text| decoded(text).ok_or_else(|| wrong("its user or password has an invalid `%`", None));
                Some(SignIn { user: decode(user)?, password: decode(password)? })
            }
        };
        Ok(Self { scheme, sign_in, host: host.to_ascii_lowercase(), port })
    }
}

/// A text without percent-encoding (RFC 3986, section 2.1); `None` if it is not valid.
fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(bytes).ok()
}

/// A text of user or password as a URL has it. Placeholders stay readable.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~{}/ ".contains(&byte);
    let piece = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(piece).collect()
}

/// The URL as written: with user and password, which are secrets unless [`ProxyUrl::hides_password`].
impl fmt::Display for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://", self.scheme.token())?;
        if let Some(SignIn { user, password }) = &self.sign_in {
            write!(f, "{}:{}@", encoded(user), encoded(password))?;
        }
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// Without user and password.
impl fmt::Debug for ProxyUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProxyUrl({})", self.shown())
    }
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignIn(hidden)")
    }
}

impl Serialize for ProxyUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ProxyUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for ProxyUrl {
    fn schema_name() -> Cow<'static, str> {
        "Proxy".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(http|socks5h?)://.+:[0-9]+/?$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> ProxyUrl {
        text.parse().unwrap_or_else(|error| panic!("{error}"))
    }

    #[test]
    fn a_url_is_taken_apart_and_written_again() {
        let url = of("socks5h://ann:a%40b%3a@Gate.example:1080/");
        assert_eq!((url.scheme, url.host.as_str(), url.port), (ProxyScheme::Socks5h, "gate.example", 1080));
        let sign_in = url.sign_in.clone().unwrap();
        assert_eq!((sign_in.user.as_str(), sign_in.password.as_str()), ("ann", "a@b:"));
        assert_eq!(url.to_string(), "socks5h://ann:a%40b%3A@gate.example:1080");
        assert_eq!(of(&url.to_string()), url);
        let hidden = of("http://{{env.USER}}:{{env.PASSWORD}}@[::1]:3128");
        assert_eq!(hidden.to_string(), "http://{{env.USER}}:{{env.PASSWORD}}@[::1]:3128");
        assert_eq!((hidden.host.as_str(), hidden.shown().as_str()), ("::1", "http://[::1]:3128"));
        let file = of("http://me:{{file.secrets/proxy}}@gate:80");
        assert!(hidden.hides_password() && of("http://a:1").hides_password() && file.hides_password());
        assert_eq!(of(&file.to_string()), file);
        assert!(!of("http://a:b@c:1").hides_password() && !of("http://a:x{{env.B}}@c:1").hides_password());
    }

    #[test]
    fn other_texts_are_refused_with_the_remedy_and_without_their_password() {
        for (text, words) in [
            ("ann:s3cr3t@gate:3128", "no scheme"),
            ("gate:3128", "no scheme"),
            ("http://ann:s3cr3t@gate", "no port"),
            ("http://ann:s3cr3t@gate:", "1 to 65535"),
            ("http://gate:0", "1 to 65535"),
            ("http://gate:99999", "1 to 65535"),
            ("http://:3128", "host"),
            ("http://ga te:3128", "host"),
            ("socks://ann:s3cr3t@gate:1080", "did you mean `socks5`"),
            ("ftp://gate:21", "scheme is unknown"),
            ("https://ann:s3cr3t@gate:443", "does not speak TLS"),
            ("http://ann:s3cr3t%zz@gate:1", "invalid `%`"),
            ("http://gate:1/path", "a path"),
            ("http://::1:3128", "host"),
        ] {
            let why = text.parse::<ProxyUrl>().unwrap_err().to_string();
            assert!(why.contains(words) && why.contains("socks5h://HOST:PORT"), "{text}: {why}");
            assert!(!why.contains("s3cr3t"), "{why}");
        }
        let secret = format!("{:?}", of("http://ann:s3cr3t@gate:1"));
        assert!(!secret.contains("s3cr3t") && !secret.contains("ann"), "{secret}");
    }

    #[test]
    fn only_addresses_and_localhost_are_known_to_be_near() {
        for (url, near) in [
            ("http://localhost:1", true),
            ("http://10.0.0.1:1", true),
            ("http://gate:1", false),
            ("http://8.8.8.8:1", false),
        ] {
            assert_eq!(of(url).is_near(), near, "{url}");
        }
    }
}
