//! Who may read the pages, and change something: browsers of this machine that have the token.
//!
//! Any program and any web page on this machine can send requests to a port of 127.0.0.1. The token keeps them out. The
//! check of `Host` keeps out web pages whose name was made to point to 127.0.0.1 (DNS rebinding). The check of `Origin`
//! keeps out changes by web pages of other ports and names: browsers send the cookie with their requests, too, because
//! all ports of a host are one site (RFC 6265, section 8.5).

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CACHE_CONTROL, COOKIE, HOST, LOCATION, ORIGIN, REFERRER_POLICY, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ring::rand::{SecureRandom, SystemRandom};

use crate::pages;

/// The key of the token in the printed address.
const KEY: &str = "token=";

/// The access rule of one server.
#[derive(Debug)]
pub(crate) struct Access {
    port: u16,
    token: String,
}

impl Access {
    /// A rule with a new token of 128 random bits.
    ///
    /// # Errors
    /// If the system has no entropy.
    pub(crate) fn new(port: u16) -> io::Result<Self> {
        let mut bytes = [0; 16];
        SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("the system gives no random numbers"))?;
        let token = bytes.iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Ok(Self { port, token })
    }

    /// The address to open in a browser.
    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}/?{KEY}{}", self.port, self.token)
    }

    /// The name of the cookie. Cookies are shared by all ports of a host, hence the port.
    fn cookie(&self) -> String {
        format!("wirelab-{}", self.port)
    }

    fn is_own_host(&self, request: &Request) -> bool {
        let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
        host.is_some_and(|host| ["127.0.0.1", "localhost"].iter().any(|name| host == format!("{name}:{}", self.port)))
    }

    /// Whether the request only reads, or comes from a page of this server.
    fn is_safe_or_own(&self, request: &Request) -> bool {
        let header = |name| request.headers().get(name).and_then(|value| value.to_str().ok());
        let own = header(HOST).map(|host| format!("http://{host}"));
        matches!(*request.method(), Method::GET | Method::HEAD)
            || header(ORIGIN).is_some_and(|origin| own.as_deref() == Some(origin))
    }

    fn has_cookie(&self, request: &Request) -> bool {
        let cookies = request.headers().get_all(COOKIE).into_iter().filter_map(|cookies| cookies.to_str().ok());
        let name = self.cookie();
        cookies
            .flat_map(|cookies| cookies.split(';'))
            .filter_map(|cookie| cookie.trim().split_once('='))
            .any(|(key, value)| key == name && is_equal(value, &self.token))
    }

    /// Whether the address has the right token.
    fn has_token(&self, request: &Request) -> bool {
        let query = request.uri().query().unwrap_or_default();
        query.split('&').filter_map(|part| part.strip_prefix(KEY)).any(|token| is_equal(token, &self.token))
    }
}

/// Compares in a time that depends on the lengths only.
fn is_equal(one: &str, other: &str) -> bool {
    let differing = one.bytes().zip(other.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    one.len() == other.len() && differing == 0
}

/// Answers or passes on a request.
pub(crate) async fn check(State(access): State<Arc<Access>>, request: Request, next: Next) -> Response {
    let mut response = if !access.is_own_host(&request) {
        let why = format!("This server answers at http://127.0.0.1:{} only.", access.port);
        pages::refusal(StatusCode::MISDIRECTED_REQUEST, &why)
    } else if !access.is_safe_or_own(&request) {
        pages::refusal(StatusCode::FORBIDDEN, "Only the pages of this server may change something.")
    } else if access.has_token(&request) {
        // The address bar and the history keep no token. `Lax`, because the address may be opened from another site,
        // such as a terminal in a browser, and a strict cookie would be missing from the redirected request.
        let cookie = format!("{}={}; HttpOnly; SameSite=Lax; Path=/", access.cookie(), access.token);
        let path = request.uri().path().to_owned();
        (StatusCode::SEE_OTHER, [(LOCATION, path), (SET_COOKIE, cookie)]).into_response()
    } else if access.has_cookie(&request) {
        next.run(request).await
    } else {
        pages::refusal(StatusCode::UNAUTHORIZED, "Open the address with the token that `wirelab serve` printed.")
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // With `no-referrer`, the origin of a form would be `null`.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
