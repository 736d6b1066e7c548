//! Pages as servers serve them, and what clients expect of them.

use std::net::IpAddr;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ending_decides_the_content_type() {
        assert_eq!(content_type("/small-10/index.html"), Some("text/html"));
        assert_eq!(content_type("/a.min.js"), Some("text/javascript"));
        for other in ["/1000.bin", "/html", "/", "/a.HTML"] {
            assert_eq!(content_type(other), None, "{other}");
        }
    }
}
