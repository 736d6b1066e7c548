//! Pages from archives: HTTP Archives 1.2 with response bodies, as developer tools of browsers save them. Each host
//! of an archive gets a server that replays its responses.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use indexmap::IndexMap;
use serde::Deserialize;
use url::{Host, Position, Url};
use wirelab_model::page::MOST_HOSTS;
use wirelab_model::page_path::PagePath;
use wirelab_model::warning::Warning;

use crate::answers::{Response, TIMING};

/// The replayable part of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    /// Host names, the document's host first.
    pub hosts: Vec<String>,
    /// Path of the document, with the query.
    pub document: String,
    /// Responses by host.
    pub answers: Vec<Vec<Response>>,
    /// Omitted entries: count by reason.
    pub omitted: IndexMap<Omission, u32>,
}

#[derive(Deserialize)]
struct Har {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: HarRequest,
    #[serde(default)]
    response: HarResponse,
}

#[derive(Deserialize)]
struct HarRequest {
    method: String,
    url: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct HarResponse {
    status: i64,
    headers: Vec<Field>,
    content: Body,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Body {
    /// -1, or absent: unknown.
    size: Option<f64>,
    mime_type: Option<String>,
    text: Option<String>,
    encoding: Option<String>,
}

/// Why an entry is omitted, as words after its count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Omission {
    /// A WebSocket connection.
    #[error("of WebSockets")]
    WebSocket,
    /// Plain HTTP; wirelab's servers of pages use TLS.
    #[error("without TLS (http://)")]
    NoTls,
    /// Another method; its response may depend on the body of the request.
    #[error("not a GET")]
    NotGet,
    /// Browsers resolve this host themselves.
    #[error("of localhost or an address")]
    NoName,
    /// wirelab's servers of pages listen at port 443.
    #[error("at a port other than 443")]
    OtherPort,
    /// The archive was saved with the cache.
    #[error("from the browser's cache (304)")]
    Cached,
    /// A range of a body.
    #[error("partial content (206)")]
    Partial,
    /// A request that failed or was withdrawn.
    #[error("without a response")]
    NoResponse,
    /// The archive was saved without bodies.
    #[error("without a body")]
    NoBody,
    /// A body whose encoding is wrong.
    #[error("with a body that is not base64")]
    NotBase64,
}

/// Why a file is no archive of a page.
#[derive(Debug)]
pub enum ArchiveError {
    /// It is not an HTTP Archive.
    NotAnArchive(serde_json::Error),
    /// It has no requests.
    NoRequests,
    /// None of its entries is a document.
    NoDocument,
    /// The response of the document cannot be replayed.
    DocumentOmitted {
        url: Url,
        /// Why.
        what: Omission,
    },
    /// The first entry that is not a redirect is not a document.
    NotADocument {
        url: Url,
        /// The status of its response.
        status: u16,
        /// The content type of its response.
        kind: String,
    },
    /// It has more hosts than a page may have.
    TooManyHosts(Vec<String>),
}

impl fmt::Display for ArchiveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SAVE: &str = "Save it with the bodies of responses and without the cache; docs/pages.md says how";
        match self {
            Self::NotAnArchive(error) => write!(f, "it is not an HTTP Archive (HAR 1.2): {error}"),
            Self::NoRequests => f.write_str("the archive has no requests"),
            Self::NoDocument => {
                f.write_str("no entry of the archive is a document: every entry is a redirect, or not a GET")
            }
            Self::DocumentOmitted { url, what } => write!(f, "its document, {url}, is {what}. {SAVE}"),
            Self::NotADocument { url, status, kind } => {
                write!(f, "the first entry that is not a redirect, {url}, is not a document: status {status}, `{kind}`")
            }
            Self::TooManyHosts(hosts) => write!(
                f,
                "the archive has {} hosts, but a page may have {MOST_HOSTS}: {}. Block some of them when you save it",
                hosts.len(),
                hosts.join(", ")
            ),
        }
    }
}

impl Archive {
    /// Parses the text of an archive.
    ///
    /// # Errors
    /// If the text is not an archive, its page cannot be replayed, or it has too many hosts.
    pub fn of(text: &str) -> Result<Self, ArchiveError> {
        // The file may begin with a byte order mark.
        let har: Har = serde_json::from_str(text.trim_start_matches('\u{feff}')).map_err(ArchiveError::NotAnArchive)?;
        let parsed = har.log.entries.iter().filter_map(|entry| Some((entry, Url::parse(&entry.request.url).ok()?)));
        // Other schemes never left the browser.
        let mut sent = parsed.filter(|(_, url)| matches!(url.scheme(), "https" | "http" | "wss" | "ws")).peekable();
        if sent.peek().is_none() {
            return Err(ArchiveError::NoRequests);
        }
        let mut archive =
            Self { hosts: Vec::new(), document: String::new(), answers: Vec::new(), omitted: IndexMap::new() };
        for (entry, url) in sent {
            let replayable = replayable(entry, &url);
            if archive.document.is_empty() && is_page(entry) {
                let document = document(&url, entry, &replayable)?;
                archive.found(document);
            }
            match replayable {
                Ok((host, content)) => archive.add(host, content),
                Err(what) => *archive.omitted.entry(what).or_default() += 1,
            }
        }
        if archive.document.is_empty() {
            return Err(ArchiveError::NoDocument);
        }
        match archive.hosts.len() {
            count if count > MOST_HOSTS as usize => Err(ArchiveError::TooManyHosts(archive.hosts)),
            _ => Ok(archive),
        }
    }

    /// Sets the document, and moves its host to the front.
    fn found(&mut self, (host, path): (String, String)) {
        self.document = path;
        if let Some(number) = self.hosts.iter().position(|one| *one == host) {
            self.hosts[..=number].rotate_right(1);
            self.answers[..=number].rotate_right(1);
        } else {
            self.hosts.insert(0, host);
            self.answers.insert(0, Vec::new());
        }
    }

    /// Adds a response; of several responses for one path the first one counts.
    fn add(&mut self, host: String, content: Response) {
        let number = self.hosts.iter().position(|one| *one == host).unwrap_or_else(|| {
            self.hosts.push(host);
            self.answers.push(Vec::new());
            self.hosts.len() - 1
        });
        self.answers[number].push(content);
    }

    /// The warning about omitted entries, if any.
    #[must_use]
    pub fn warning(&self, path: PagePath) -> Option<Warning> {
        let what: Vec<_> = self.omitted.iter().map(|(what, count)| format!("{count} {what}")).collect();
        (!what.is_empty()).then(|| Warning::ArchiveInPart { page: path.as_str().to_owned(), what })
    }
}

/// Whether an entry may be the page's document: a GET whose response is not a redirect.
fn is_page(entry: &Entry) -> bool {
    entry.request.method == "GET" && !(300..400).contains(&entry.response.status)
}

/// Host and path of the document.
fn document(
    url: &Url,
    entry: &Entry,
    replayable: &Result<(String, Response), Omission>,
) -> Result<(String, String), ArchiveError> {
    let (host, content) = match replayable {
        Ok(replayable) => replayable,
        Err(what) => return Err(ArchiveError::DocumentOmitted { url: url.clone(), what: *what }),
    };
    let kind = kind(entry);
    match kind.split(';').next().unwrap_or_default().trim() {
        "text/html" | "application/xhtml+xml" if content.status == 200 => Ok((host.clone(), content.path.clone())),
        _ => Err(ArchiveError::NotADocument { url: url.clone(), status: content.status, kind: kind.to_owned() }),
    }
}

/// The host and response to replay, or the reason why the entry is omitted.
fn replayable(entry: &Entry, url: &Url) -> Result<(String, Response), Omission> {
    let Entry { request, response } = entry;
    match url.scheme() {
        "ws" | "wss" => return Err(Omission::WebSocket),
        "http" => return Err(Omission::NoTls),
        _ if request.method != "GET" => return Err(Omission::NotGet),
        _ => {}
    }
    let host = match url.host() {
        // Browsers resolve these hosts themselves.
        Some(Host::Domain(name)) if name != "localhost" && !name.ends_with(".localhost") => name.to_owned(),
        _ => return Err(Omission::NoName),
    };
    if url.port().is_some() {
        return Err(Omission::OtherPort);
    }
    let status = match u16::try_from(response.status) {
        Ok(304) => return Err(Omission::Cached),
        Ok(206) => return Err(Omission::Partial),
        Ok(status @ 200..=599) => status,
        _ => return Err(Omission::NoResponse),
    };
    let content = &response.content;
    let body = match (&content.text, content.encoding.as_deref()) {
        (Some(text), Some("base64")) => STANDARD.decode(text).map_err(|_| Omission::NotBase64)?,
        (Some(text), _) => text.clone().into_bytes(),
        (None, _) if content.size.is_some_and(|size| size > 0.0) => return Err(Omission::NoBody),
        (None, _) => Vec::new(),
    };
    let path = url[Position::BeforePath..Position::AfterQuery].to_owned();
    Ok((host, Response { path, status, fields: fields(entry), body }))
}

/// The header fields of a replayed response: only fields that affect rendering and further requests. Archives contain
/// uncompressed bodies.
fn fields(entry: &Entry) -> Vec<(String, String)> {
    const KEPT: [&str; 4] = ["content-type", "location", "link", "cache-control"];
    let is_kept = |name: &str| KEPT.contains(&name) || name.starts_with("access-control-");
    // Several fields of one name are lines of one value.
    let lines = entry.response.headers.iter().flat_map(|field| {
        let name = field.name.to_lowercase();
        field.value.split('\n').map(move |value| (name.clone(), value.trim().to_owned()))
    });
    let is_plain = |value: &str| value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let mut fields: Vec<_> = lines.filter(|(name, value)| is_kept(name) && is_plain(value)).collect();
    let kind = kind(entry);
    if !kind.is_empty() && fields.iter().all(|(name, _)| name != "content-type") {
        fields.push(("content-type".to_owned(), kind.to_owned()));
    }
    let (name, value) = TIMING;
    fields.push((name.to_owned(), value.to_owned()));
    fields
}

/// Content type of a response.
fn kind(entry: &Entry) -> &str {
    let response = &entry.response;
    let field = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case("content-type"));
    field.map(|field| field.value.as_str()).or(response.content.mime_type.as_deref()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn entry(method: &str, url: &str, status: i64, kind: &str, content: Value) -> Value {
        let mut content = content;
        content["mimeType"] = json!(kind);
        json!({
            "startedDateTime": "2026-01-01T00:00:00Z", "time": 1,
            "request": { "method": method, "url": url, "headers": [] },
            "response": {
                "status": status, "content": content,
                "headers": [
                    { "name": "Content-Type", "value": kind }, { "name": "set-cookie", "value": "a=b" },
                    { "name": "Access-Control-Allow-Origin", "value": "*" }, { "name": "Link", "value": "<a>\n<b>" },
                ],
            },
        })
    }

    fn document() -> Value {
        entry("GET", "https://WWW.shop.test/?q=1#top", 200, "text/html", json!({ "size": 4, "text": "<p>é" }))
    }

    fn of(entries: Vec<Value>) -> Result<Archive, String> {
        let text = json!({ "log": { "version": "1.2", "entries": entries } }).to_string();
        Archive::of(&text).map_err(|error| error.to_string())
    }

    #[test]
    fn every_host_answers_what_the_archive_holds_by_path_and_query() {
        let moved = entry("GET", "https://shop.test/", 301, "", json!({ "size": 0 }));
        let style = entry(
            "GET",
            "https://static.shop.test/a.css?v=2",
            200,
            "text/css",
            json!({ "text": "Ym9keXt9", "encoding": "base64" }),
        );
        let later = entry("GET", "https://static.shop.test/b", 404, "text/plain", json!({ "size": -1 }));
        let archive = of(vec![moved, document(), style, later]).unwrap();
        assert_eq!(archive.hosts, ["www.shop.test", "shop.test", "static.shop.test"], "the document's first");
        assert_eq!(archive.document, "/?q=1");
        let answers = |host: usize| -> Vec<_> {
            let one = |content: &Response| (content.path.clone(), content.status, content.body.clone());
            archive.answers[host].iter().map(one).collect()
        };
        assert_eq!(answers(0), [("/?q=1".to_owned(), 200, "<p>é".as_bytes().to_vec())]);
        assert_eq!(answers(1), [("/".to_owned(), 301, Vec::new())]);
        let expected = [("/a.css?v=2".to_owned(), 200, b"body{}".to_vec()), ("/b".to_owned(), 404, Vec::new())];
        assert_eq!(answers(2), expected);
        let fields: Vec<_> =
            archive.answers[2][0].fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let expected = [
            ("content-type", "text/css"),
            ("access-control-allow-origin", "*"),
            ("link", "<a>"),
            ("link", "<b>"),
            ("timing-allow-origin", "*"),
        ];
        assert_eq!(fields, expected);
        assert!(archive.omitted.is_empty());
    }

    #[test]
    fn omitted_entries_are_counted_by_reason() {
        let url = |url: &str| entry("GET", url, 200, "image/png", json!({ "text": "" }));
        let status = |status| entry("GET", "https://www.shop.test/x", status, "image/png", json!({ "size": 3 }));
        let omitted = |other: Value| {
            let archive = of(vec![document(), other]).unwrap();
            assert_eq!(archive.hosts, ["www.shop.test"]);
            archive.omitted.into_iter().collect::<Vec<_>>()
        };
        for (other, what) in [
            (entry("POST", "https://www.shop.test/", 200, "", json!({})), Omission::NotGet),
            (url("http://plain.test/a.png"), Omission::NoTls),
            (url("wss://www.shop.test/socket"), Omission::WebSocket),
            (url("https://192.0.2.1/a.png"), Omission::NoName),
            (url("https://localhost/a.png"), Omission::NoName),
            (url("https://www.shop.test:8443/a.png"), Omission::OtherPort),
            (status(0), Omission::NoResponse),
            (status(304), Omission::Cached),
            (status(206), Omission::Partial),
            (status(200), Omission::NoBody),
            (
                entry("GET", "https://a.test/", 200, "", json!({ "text": "?", "encoding": "base64" })),
                Omission::NotBase64,
            ),
        ] {
            assert_eq!(omitted(other), [(what, 1)]);
        }
        assert!(omitted(url("data:image/png;base64,AA==")).is_empty(), "it never left the browser");
    }

    #[test]
    fn archives_without_a_page_are_refused_with_the_remedy() {
        let many =
            (0..21).map(|n| entry("GET", &format!("https://h{n}.test/"), 200, "text/html", json!({ "text": "" })));
        let bare = entry("GET", "https://www.shop.test/", 200, "text/html", json!({ "size": 4 }));
        let picture = entry("GET", "https://www.shop.test/a.png", 200, "image/png", json!({ "text": "" }));
        let moved = entry("GET", "https://shop.test/", 301, "", json!({ "size": 0 }));
        for (entries, words) in [
            (vec![], "has no requests"),
            (vec![bare], "https://www.shop.test/, is without a body. Save it with the bodies"),
            (vec![picture, document()], "a.png, is not a document: status 200, `image/png`"),
            (vec![moved], "no entry of the archive is a document"),
            (many.collect(), "has 21 hosts, but a page may have 20: h0.test, h1.test"),
        ] {
            let why = of(entries).unwrap_err();
            assert!(why.contains(words), "{why}");
        }
        assert!(
            Archive::of("{}").unwrap_err().to_string().contains("not an HTTP Archive (HAR 1.2): missing field `log`")
        );
        let marked = format!("\u{feff}{}", json!({ "log": { "entries": [document()] } }));
        assert_eq!(Archive::of(&marked).unwrap().hosts, ["www.shop.test"]);
    }
}
