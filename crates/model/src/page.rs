//! Pages that browsers load in trials: which one, what is expected of it, and what is recorded of each load.

use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Values;
use crate::network::SERVER_NAME;
use crate::outcome::Outcome;
use crate::page_path::PagePath;

/// A page: a document and everything that it links to. wirelab makes all of them itself but the last two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum PageName {
    /// 10 small images: series 1, test 1 of the thesis that the study `page-load` follows.
    Small10,
    /// 20 small images: series 1, test 2.
    Small20,
    /// 50 small images: series 1, test 3.
    Small50,
    /// 100 small images: series 1, test 4.
    Small100,
    /// 10 medium images: series 2, test 1.
    Medium10,
    /// 20 medium images: series 2, test 2.
    Medium20,
    /// 50 medium images: series 2, test 3.
    Medium50,
    /// 100 medium images: series 2, test 4.
    Medium100,
    /// 8 large images and 2 very large ones: series 3, test 1.
    Large10,
    /// 200 images of all sizes below the large ones: series 3, test 2.
    Large200,
    /// The images of the two before: series 3, test 3.
    Large210,
    /// 2 very large images: series 3, test 4.
    Large2,
    /// Style sheets, scripts and images as the median page of today has them.
    Today,
    /// `index.html` in this folder, and every file that it links to there.
    Folder(PagePath),
    /// What this HTTP Archive holds, from all its hosts.
    Archive(PagePath),
}

/// The ending by which an archive differs from a folder.
const ARCHIVE: &str = ".har";

impl PageName {
    /// Every page that wirelab makes, those of the thesis first.
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

    /// As study files write it. Of a page that wirelab makes also its folder on the server.
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
            Self::Folder(path) | Self::Archive(path) => path.as_str(),
        }
    }

    /// Whether wirelab makes it, and therefore knows what is in it.
    #[must_use]
    pub const fn is_made(self) -> bool {
        !matches!(self, Self::Folder(_) | Self::Archive(_))
    }

    fn own(path: PagePath) -> Self {
        if path.as_str().ends_with(ARCHIVE) { Self::Archive(path) } else { Self::Folder(path) }
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
        let made = Self::ALL.into_iter().find(|page| page.token() == text);
        made.or_else(|| PagePath::of(text).map(Self::own)).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|page| page.token()).collect();
            format!(
                "unknown page `{text}`, expected one of {}, or the path of a folder or of an archive (`.har`): `./{text}`",
                known.join(", ")
            )
        })
    }
}

impl TryFrom<String> for PageName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<PageName> for String {
    fn from(page: PageName) -> Self {
        page.token().to_owned()
    }
}

impl JsonSchema for PageName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "PageName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let made: Vec<_> = Self::ALL.iter().map(|page| page.token()).collect();
        schemars::json_schema!({
            "description": "A page that wirelab makes, or the path of a folder with an `index.html`, or of an HTTP Archive (`.har`)",
            "anyOf": [{ "type": "string", "enum": made }, { "type": "string", "pattern": "/" }],
        })
    }
}

/// The most hosts that a page may have.
pub const MOST_HOSTS: u32 = 20;

/// The names of so many hosts that a page which wirelab makes is spread over, the first that of its document.
#[must_use]
pub fn host_names(count: u32) -> Vec<String> {
    let others = (2..=count).map(|number| format!("cdn-{number}.{SERVER_NAME}"));
    std::iter::once(SERVER_NAME.to_owned()).chain(others).collect()
}

/// The content types of a page's files, by their endings: what the feature `pages` promises of every server.
pub const CONTENT_TYPES: [(&str, &str); 5] = [
    ("html", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("jpg", "image/jpeg"),
    ("woff2", "font/woff2"),
];

/// Those of what else sites consist of, as the built-in server says them. Of other servers nothing is promised, and what they say is
/// checked where a page is a folder.
pub const MORE_TYPES: [(&str, &str); 20] = [
    ("htm", "text/html"),
    ("mjs", "text/javascript"),
    ("json", "application/json"),
    ("txt", "text/plain"),
    ("xml", "application/xml"),
    ("webmanifest", "application/manifest+json"),
    ("wasm", "application/wasm"),
    ("jpeg", "image/jpeg"),
    ("png", "image/png"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("svg", "image/svg+xml"),
    ("ico", "image/vnd.microsoft.icon"),
    ("woff", "font/woff"),
    ("ttf", "font/ttf"),
    ("otf", "font/otf"),
    ("mp4", "video/mp4"),
    ("webm", "video/webm"),
    ("mp3", "audio/mpeg"),
];

/// The content type of a file; absent for what pages do not consist of.
#[must_use]
pub fn content_type(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    CONTENT_TYPES.iter().chain(&MORE_TYPES).find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}

/// What a server does for a page besides serving its files. Where it is present, every answer has `cache-control: max-age=3600`, because
/// browsers throw away what they were hinted at and may not keep.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServedPage {
    /// The path of its document.
    pub document: String,
    /// How long it thinks before the document's final response, in nanoseconds from the arrival of the request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub think_ns: u64,
    /// The fields `link` of a response 103 (Early Hints, RFC 8297) that it sends when the request for the document arrives. Absent: it
    /// sends none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub early_hints: Vec<String>,
    /// What it makes of the priorities of requests. Absent: what its library does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Priorities>,
}

/// What a server makes of the priorities that browsers give their requests (RFC 9218).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priorities {
    /// Responses leave by the urgency of their requests, and within one urgency by whether they are incremental.
    Obeyed,
    /// Responses take turns.
    Ignored,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a server answers a request for one path with. The answers of a host are a file, a JSON list of these; whatever the list lacks is
/// answered with 404.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The path with its query, as requests have it.
    pub path: String,
    /// The status.
    pub status: u16,
    /// The fields of the header but `content-length`.
    pub fields: Vec<(String, String)>,
    /// The file with the body, beside the list; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// What a client is told of a page that it is to load, with everything in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPage {
    /// The requests that the page makes, that for its document included. A load with another number is no sample. Absent: the page is
    /// somebody's own, and nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// The bytes of all bodies together. A load whose responses announce another number is no sample. Absent: as above; without `hosts`,
    /// a load is then no sample that asks another host, or whose files come with other content types than their endings say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    /// The hosts of the page, its document's first, all at the port of the server: the protocol is forced on each of them, and a load that
    /// asks another one is no sample. Absent: there is one, the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<PageHost>,
    /// Whether its document is preceded by early hints. A load in which nothing was asked for because of them is no sample.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early_hints: bool,
    /// A file for every load of the window as an HTTP Archive (HAR 1.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub har: Option<PathBuf>,
    /// A folder for the films of the loads. Pictures of the window take the browser's time, so the loads are of no other use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub film: Option<PathBuf>,
    /// A folder for a log of what the browser's network stack does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netlog_dir: Option<PathBuf>,
}

/// A host of a page, and what is to be had from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageHost {
    /// Its name.
    pub name: String,
    /// Its address.
    pub address: IpAddr,
    /// Its share of the page's requests. A load with another one is no sample. Absent: nobody knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// Its share of the bytes of bodies, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
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

impl PageLoad {
    /// How many connections carried the requests to a host; absent where there are requests and the browser numbers none of their
    /// connections.
    #[must_use]
    pub fn connections_to(&self, host: &str) -> Option<usize> {
        let own: Vec<_> = self.resources.iter().filter(|resource| resource.host() == host).collect();
        let numbers: HashSet<u64> = own.iter().filter_map(|resource| resource.connection).collect();
        (own.is_empty() || !numbers.is_empty()).then_some(numbers.len())
    }
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
    /// The connection that the response came over, as a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The page wants it.
    pub start_ns: u64,
    /// From when to when the connection was opened that was opened for it, TLS or QUIC included. Firefox may have sent it on another one
    /// that was ready sooner.
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

impl PageResource {
    /// The host of its address, without the port.
    #[must_use]
    pub fn host(&self) -> &str {
        let authority = self.url.split_once("://").map_or("", |(_, rest)| rest);
        let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
        authority.rsplit_once(':').map_or(authority, |(host, _)| host)
    }
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
        let folder: PageName = "./my-site".parse().unwrap();
        assert_eq!(serde_json::to_value(folder).unwrap(), "./my-site");
        assert_eq!(serde_json::from_str::<PageName>("\"./my-site\"").unwrap(), folder);
        let archive: PageName = "./saved.har".parse().unwrap();
        assert!(matches!(archive, PageName::Archive(_)) && matches!(folder, PageName::Folder(_)));
        assert!("saved.har".parse::<PageName>().unwrap_err().ends_with("`./saved.har`"), "a path has a slash");
        assert!(PageName::Today.is_made() && !archive.is_made() && !folder.is_made());
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
    fn hosts_are_named_and_connections_counted_by_them() {
        assert_eq!(host_names(1), ["wirelab.test"]);
        assert_eq!(host_names(3), ["wirelab.test", "cdn-2.wirelab.test", "cdn-3.wirelab.test"]);
        let resource = |url: &str, connection| PageResource { url: url.to_owned(), connection, ..Default::default() };
        let load = PageLoad {
            outcome: Outcome::Ok,
            values: Values::new(),
            warnings: Vec::new(),
            resources: vec![
                resource("https://a.test/", Some(1)),
                resource("https://a.test:8443/x?y=https://b.test/", Some(1)),
                resource("https://b.test?x", Some(2)),
                resource("https://b.test/2", Some(3)),
                resource("https://b.test/3", None),
                resource("https://c.test/", None),
            ],
        };
        let counts = ["a.test", "b.test", "c.test", "d.test"].map(|host| load.connections_to(host));
        assert_eq!(counts, [Some(1), Some(2), None, Some(0)]);
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
