//! Pages that browsers load in trials: which one, what is expected of it, and what is recorded of each load.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Values;
use crate::outcome::Outcome;

/// A page that wirelab makes itself: a document and everything that it links to, on one host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PageName {
    /// 10 small images: series 1, test 1 of the thesis that the study `page-load` follows.
    #[serde(rename = "small-10")]
    Small10,
    /// 20 small images: series 1, test 2.
    #[serde(rename = "small-20")]
    Small20,
    /// 50 small images: series 1, test 3.
    #[serde(rename = "small-50")]
    Small50,
    /// 100 small images: series 1, test 4.
    #[serde(rename = "small-100")]
    Small100,
    /// 10 medium images: series 2, test 1.
    #[serde(rename = "medium-10")]
    Medium10,
    /// 20 medium images: series 2, test 2.
    #[serde(rename = "medium-20")]
    Medium20,
    /// 50 medium images: series 2, test 3.
    #[serde(rename = "medium-50")]
    Medium50,
    /// 100 medium images: series 2, test 4.
    #[serde(rename = "medium-100")]
    Medium100,
    /// 8 large images and 2 very large ones: series 3, test 1.
    #[serde(rename = "large-10")]
    Large10,
    /// 200 images of all sizes below the large ones: series 3, test 2.
    #[serde(rename = "large-200")]
    Large200,
    /// The images of the two before: series 3, test 3.
    #[serde(rename = "large-210")]
    Large210,
    /// 2 very large images: series 3, test 4.
    #[serde(rename = "large-2")]
    Large2,
    /// Style sheets, scripts and images as the median page of today has them.
    Today,
}

impl PageName {
    /// Every page, those of the thesis first.
    pub const ALL: [Self; 13] = [
        Self::Small10,
        Self::Small20,
        Self::Small50,
        Self::Small100,
        Self::Medium10,
        Self::Medium20,
        Self::Medium50,
        Self::Medium100,
        Self::Large10,
        Self::Large200,
        Self::Large210,
        Self::Large2,
        Self::Today,
    ];

    /// The token of study files, and the folder of the page on its server.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Small10 => "small-10",
            Self::Small20 => "small-20",
            Self::Small50 => "small-50",
            Self::Small100 => "small-100",
            Self::Medium10 => "medium-10",
            Self::Medium20 => "medium-20",
            Self::Medium50 => "medium-50",
            Self::Medium100 => "medium-100",
            Self::Large10 => "large-10",
            Self::Large200 => "large-200",
            Self::Large210 => "large-210",
            Self::Large2 => "large-2",
            Self::Today => "today",
        }
    }
}

impl fmt::Display for PageName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.token())
    }
}

impl FromStr for PageName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|page| page.token() == text).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|page| page.token()).collect();
            format!("unknown page `{text}`, expected one of {}", known.join(", "))
        })
    }
}

/// The content types of a page's files, by their endings: what the feature `pages` promises of every server.
pub const CONTENT_TYPES: [(&str, &str); 5] = [
    ("html", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("jpg", "image/jpeg"),
    ("woff2", "font/woff2"),
];

/// The content type of a file; absent for what pages do not consist of.
#[must_use]
pub fn content_type(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    CONTENT_TYPES.iter().find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}

/// What a client is told of a page that it is to load, with everything in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPage {
    /// The requests that the page makes, that for its document included. A load with another number is no sample.
    pub requests: u32,
    /// The bytes of all bodies together. A load whose responses announce another number is no sample.
    pub body_bytes: u64,
    /// A file for every load of the window as an HTTP Archive (HAR 1.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub har: Option<PathBuf>,
}

/// One load of a page, as a browser saw it: one JSON line of the results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageLoad {
    /// Whether it is a sample: a load with one resource over another protocol than the forced one is none.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What was measured of it, by the names of `wirelab page`; empty where it is no sample.
    pub values: Values,
    /// What is to be said of it all the same.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The requests, in the order in which they were asked for.
    pub resources: Vec<PageResource>,
}

/// One request of a page. Times are nanoseconds since the first request was asked for; what did not happen, or is not known, is
/// absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PageResource {
    /// Its address.
    pub url: String,
    /// What the page wants it for, in the browser's word.
    pub kind: String,
    /// The status of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The protocol, by the browser's network events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Why there is no complete response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The connection, numbered by the browser.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The page wants it.
    pub start_ns: u64,
    /// From when to when the connection was opened that was opened for it, TLS or QUIC included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ns: Option<(u64, u64)>,
    /// The request leaves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_ns: Option<u64>,
    /// The response begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<u64>,
    /// The response is complete, or given up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Bytes received, header and body, as they were transferred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Blame;

    #[test]
    fn a_page_is_written_as_its_token() {
        for page in PageName::ALL {
            assert_eq!(serde_json::to_value(page).unwrap(), page.token());
            assert_eq!(page.token().parse(), Ok(page));
        }
        assert!("small-11".parse::<PageName>().unwrap_err().contains("small-10, small-20"));
    }

    #[test]
    fn the_ending_decides_the_content_type() {
        assert_eq!(content_type("/small-10/index.html"), Some("text/html"));
        assert_eq!(content_type("/a.min.js"), Some("text/javascript"));
        for other in ["/1000.bin", "/html", "/", "/a.HTML"] {
            assert_eq!(content_type(other), None, "{other}");
        }
    }

    #[test]
    fn a_load_reads_back_equal_whatever_came_of_it() {
        let resource = PageResource { url: "https://a/".to_owned(), connect_ns: Some((1, 2)), ..Default::default() };
        for outcome in [Outcome::Ok, Outcome::failed(Blame::Server, "over h2")] {
            let resources = vec![resource.clone()];
            let load = PageLoad { outcome, values: Values::new(), warnings: Vec::new(), resources };
            assert_eq!(serde_json::from_str::<PageLoad>(&serde_json::to_string(&load).unwrap()).unwrap(), load);
        }
    }
}
