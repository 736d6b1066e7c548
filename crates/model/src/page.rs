//! Pages that browsers load in trials: names, expectations and records of loads.

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

/// A page: a document with all its resources. wirelab generates all of them except the last two.
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
    /// Style sheets, scripts and images in the numbers and sizes of today's median page.
    Today,
    /// `index.html` in this folder, and every file of the folder that it links to.
    Folder(PagePath),
    /// The responses of this HTTP Archive, from all its hosts.
    Archive(PagePath),
}

/// File name extension of an archive; a path without it is a folder.
const ARCHIVE: &str = ".har";

impl PageName {
    /// Every page that wirelab generates, the thesis's pages first.
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

    /// The name in study files; for a generated page, also its folder on the server.
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

    /// Whether wirelab generates it, and so knows its content.
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
            "description": "A page that wirelab generates, or the path of a folder with an `index.html`, or of an HTTP Archive (`.har`)",
            "anyOf": [{ "type": "string", "enum": made }, { "type": "string", "pattern": "/" }],
        })
    }
}

/// Maximum number of hosts of a page.
pub const MOST_HOSTS: u32 = 20;

/// Names of `count` hosts of a generated page; the first host has the document.
#[must_use]
pub fn host_names(count: u32) -> Vec<String> {
    let others = (2..=count).map(|number| format!("cdn-{number}.{SERVER_NAME}"));
    std::iter::once(SERVER_NAME.to_owned()).chain(others).collect()
}

/// Content types of a page's files by file name extension; the feature `pages` requires them of every server.
pub const CONTENT_TYPES: [(&str, &str); 5] = [
    ("html", "text/html"),
    ("css", "text/css"),
    ("js", "text/javascript"),
    ("jpg", "image/jpeg"),
    ("woff2", "font/woff2"),
];

/// Content types of further files of sites, as the built-in server sends them. Other servers may send different ones;
/// wirelab checks them if a page is a folder.
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

/// The content type of a file; `None` for an unknown extension.
#[must_use]
pub fn content_type(path: &str) -> Option<&'static str> {
    let (_, ending) = path.rsplit_once('.')?;
    CONTENT_TYPES.iter().chain(&MORE_TYPES).find(|(known, _)| *known == ending).map(|(_, kind)| *kind)
}

/// Tasks of a page's server in addition to serving files. If present, every answer has `cache-control: max-age=3600`,
/// because browsers discard hinted resources that they may not cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServedPage {
    /// Path of the page's document.
    pub document: String,
    /// Delay of the document's final response, in nanoseconds from the arrival of the request.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub think_ns: u64,
    /// Values of the field `link` of a response 103 (Early Hints, RFC 8297), which the server sends when the request
    /// for the document arrives. Absent: no such response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub early_hints: Vec<String>,
    /// Treatment of request priorities. Absent: the library's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priorities: Option<Priorities>,
}

/// A server's treatment of the priorities of browsers' requests (RFC 9218).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Priorities {
    /// The server orders responses by urgency, and within one urgency by the incremental flag.
    Obeyed,
    /// The server sends responses in turns.
    Ignored,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The answer of a server to requests for one path. A JSON list of these in a file describes a host; a path that is not
/// in the list gets 404.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Answer {
    /// The path with its query, as in the request.
    pub path: String,
    /// The status.
    pub status: u16,
    /// Header fields except `content-length`.
    pub fields: Vec<(String, String)>,
    /// File of the body, in the folder of the list; absent: no body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}

/// The expected content of a page to load with all its resources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExpectedPage {
    /// Number of requests of the page, including the document. A load with a different number is no sample. Absent:
    /// unknown, because wirelab did not generate the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// Total bytes of all bodies. A load whose responses announce a different total is no sample. Absent: unknown;
    /// then, without `hosts`, a load is no sample if it contacts another host, or if a content type contradicts the
    /// file name extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
    /// The hosts of the page, the document's first, all at the server's port. The protocol is forced on each of them,
    /// and a load that contacts another host is no sample. Absent: one host, the server.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<PageHost>,
    /// Whether early hints precede the document. A load without a request caused by the hints is no sample.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub early_hints: bool,
    /// File for all loads of the window, as an HTTP Archive (HAR 1.2).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub har: Option<PathBuf>,
    /// Folder for films of the loads. Screenshots take the browser's time, so such loads serve no other purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub film: Option<PathBuf>,
    /// Folder for a log of the browser's network stack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netlog_dir: Option<PathBuf>,
}

/// A host of a page, with its share of the content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PageHost {
    /// Name of the host.
    pub name: String,
    /// IP address of the host.
    pub address: IpAddr,
    /// Number of the page's requests to this host. A load with a different number is no sample. Absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// Bytes of bodies from this host. A load with a different number is no sample. Absent: unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_bytes: Option<u64>,
}

/// One load of a page, as measured by a browser: one JSON line of the results file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageLoad {
    /// Whether the load is a sample; a load with a resource over another protocol than the forced one is not.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// Measured values by the names of `wirelab page`; empty if the load is no sample.
    pub values: Values,
    /// Warnings about the load.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The requests in order of their start.
    pub resources: Vec<PageResource>,
}

impl PageLoad {
    /// Number of connections that carried the requests to a host; `None` if the host has requests but the browser
    /// numbers no connection of them.
    #[must_use]
    pub fn connections_to(&self, host: &str) -> Option<usize> {
        let own: Vec<_> = self.resources.iter().filter(|resource| resource.host() == host).collect();
        let numbers: HashSet<u64> = own.iter().filter_map(|resource| resource.connection).collect();
        (own.is_empty() || !numbers.is_empty()).then_some(numbers.len())
    }
}

/// One request of a page. Times are nanoseconds since the start of the first request; a value that is unknown or does
/// not apply is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PageResource {
    /// URL of the request.
    pub url: String,
    /// Purpose of the request, in the browser's terms.
    pub kind: String,
    /// The status of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The protocol, from the browser's network events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// Reason for an incomplete response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Number of the connection of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u64>,
    /// The page asks for the resource.
    pub start_ns: u64,
    /// Start and end of opening the connection for this request, including TLS or QUIC. Firefox may have sent the
    /// request on another connection that was ready sooner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connect_ns: Option<(u64, u64)>,
    /// The browser sends the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_ns: Option<u64>,
    /// The response begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_ns: Option<u64>,
    /// The response is complete or aborted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Bytes received as transferred, header and body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub received: Option<u64>,
}

impl PageResource {
    /// The host of the URL, without the port.
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
    fn a_load_reads_back_equal_for_every_outcome() {
        let resource = PageResource { url: "https://a/".to_owned(), connect_ns: Some((1, 2)), ..Default::default() };
        for outcome in [Outcome::Ok, Outcome::failed(Blame::Server, "over h2")] {
            let resources = vec![resource.clone()];
            let load = PageLoad { outcome, values: Values::new(), warnings: Vec::new(), resources };
            assert_eq!(serde_json::from_str::<PageLoad>(&serde_json::to_string(&load).unwrap()).unwrap(), load);
        }
    }
}
