//! Pages that browsers load in trials: names, expectations and records of loads.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
pub use wirelab_contract::page::*;

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
    type Err = UnknownPage;

    fn from_str(text: &str) -> Result<Self, UnknownPage> {
        let made = Self::ALL.into_iter().find(|page| page.token() == text);
        made.or_else(|| PagePath::of(text).map(Self::own)).ok_or_else(|| UnknownPage(text.to_owned()))
    }
}

/// A text that is no page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownPage(String);

impl fmt::Display for UnknownPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (text, known) = (&self.0, PageName::ALL.map(|page| page.token()).join(", "));
        write!(
            f,
            "unknown page `{text}`, expected one of {known}, or the path of a folder or of an archive (`.har`): `./{text}`"
        )
    }
}

impl std::error::Error for UnknownPage {}

impl TryFrom<String> for PageName {
    type Error = UnknownPage;

    fn try_from(text: String) -> Result<Self, UnknownPage> {
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
        assert!("small-11".parse::<PageName>().unwrap_err().to_string().contains("small-10, small-20"));
        let folder: PageName = "./my-site".parse().unwrap();
        assert_eq!(serde_json::to_value(folder).unwrap(), "./my-site");
        assert_eq!(serde_json::from_str::<PageName>("\"./my-site\"").unwrap(), folder);
        let archive: PageName = "./saved.har".parse().unwrap();
        assert!(matches!(archive, PageName::Archive(_)) && matches!(folder, PageName::Folder(_)));
        assert!(
            "saved.har".parse::<PageName>().unwrap_err().to_string().ends_with("`./saved.har`"),
            "a path has a slash"
        );
        assert!(PageName::Today.is_made() && !archive.is_made() && !folder.is_made());
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
