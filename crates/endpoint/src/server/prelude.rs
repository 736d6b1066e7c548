//! The server's delay and early hints before a page's document.

use std::time::Duration;

use http::header::LINK;
use http::{HeaderValue, Response, StatusCode};
use wirelab_contract::page::ServedPage;

use crate::refusal::Refusal;

/// The delay and the hints before a document's final response.
#[derive(Debug)]
pub struct Prelude {
    document: String,
    hints: Vec<HeaderValue>,
    /// Delay from the arrival of the request to the final response.
    pub think: Duration,
}

impl Prelude {
    /// Cache lifetime of a page's answers. Chromium requests hinted resources through its cache, and requests them
    /// again if they may not be cached.
    pub const KEPT: &str = "max-age=3600";

    /// Creates it from the spec.
    pub fn new(page: &ServedPage) -> Result<Self, Refusal> {
        let field = |link: &String| {
            HeaderValue::from_str(link)
                .map_err(|_| Refusal::unsupported(format!("`early_hints` has {link:?}, which is no valid field value")))
        };
        Ok(Self {
            document: page.document.clone(),
            hints: page.early_hints.iter().map(field).collect::<Result<_, _>>()?,
            think: Duration::from_nanos(page.think_ns),
        })
    }

    /// Whether it applies to a request for this path.
    pub fn precedes(&self, path: &str) -> bool {
        self.document == path
    }

    /// The interim response; `None` without hints.
    pub fn interim(&self) -> Option<Response<()>> {
        if self.hints.is_empty() {
            return None;
        }
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::EARLY_HINTS;
        response.headers_mut().extend(self.hints.iter().map(|link| (LINK, link.clone())));
        Some(response)
    }

    /// The interim response in HTTP/1.1 format.
    #[cfg(feature = "builtin")]
    pub fn interim_text(&self) -> Option<Vec<u8>> {
        let response = self.interim()?;
        let mut text = b"HTTP/1.1 103 Early Hints\r\n".to_vec();
        for (name, value) in response.headers() {
            text.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        text.extend(b"\r\n");
        Some(text)
    }
}

#[cfg(all(test, feature = "builtin"))]
mod tests {
    use super::*;

    fn prelude(early_hints: &[&str]) -> Result<Prelude, Refusal> {
        let early_hints = early_hints.iter().map(|link| (*link).to_owned()).collect();
        Prelude::new(&ServedPage { document: "/a/index.html".to_owned(), think_ns: 7, early_hints, priorities: None })
    }

    #[test]
    fn hints_are_links_of_a_response_103() {
        let prelude = prelude(&["</a/1.css>; rel=preload; as=style", "</a/2.js>; rel=preload; as=script"]).unwrap();
        assert!(prelude.precedes("/a/index.html") && !prelude.precedes("/a/1.css"));
        let text = String::from_utf8(prelude.interim_text().unwrap()).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 103 Early Hints\r\nlink: </a/1.css>; rel=preload; as=style\r\nlink: </a/2.js>; rel=preload; as=script\r\n\r\n"
        );
    }

    #[test]
    fn without_hints_no_interim_response_is_sent_and_invalid_hints_are_refused() {
        assert!(prelude(&[]).unwrap().interim().is_none());
        let refusal = prelude(&["</a>\r\nx: y"]).unwrap_err();
        assert!(matches!(&refusal, Refusal::Unsupported(why) if why.contains("`early_hints`")), "{refusal:?}");
    }
}
