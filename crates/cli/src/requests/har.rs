//! Requests of an HTTP Archive (HAR 1.2), as browsers save it.

use std::path::Path;

use serde::Deserialize;

use super::Found;
use crate::failure::{Failure, Result};
use crate::stderr;
use crate::target::Location;

/// Fields that belong to the protocol or to the connection; the client writes its own.
const OF_THE_PROTOCOL: [&str; 6] =
    ["host", "connection", "content-length", "transfer-encoding", "keep-alive", "upgrade-insecure-requests"];

#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
struct Entry {
    request: Sent,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    method: String,
    url: String,
    #[serde(default)]
    headers: Vec<Field>,
    post_data: Option<Body>,
}

#[derive(Deserialize)]
struct Field {
    name: String,
    value: String,
}

#[derive(Deserialize)]
struct Body {
    text: Option<String>,
}

/// Reads the requests of an archive to the server of its first one. Those to other servers are counted and omitted.
pub(super) fn parse(text: &str, path: &Path) -> Result<Vec<Found>> {
    let wrong = |why: String| Failure::input(format!("{}: {why}", path.display()));
    let archive: Archive = serde_json::from_str(text)
        .map_err(|error| wrong(format!("no HTTP Archive, which is JSON with `log.entries`: {error}")))?;
    let entries = archive.log.entries;
    let all = entries.len();
    let Some(first) = entries.first() else { return Err(wrong("the archive has no request".to_owned())) };
    let server = Location::parse(&first.request.url)?;
    let is_beside = |sent: &Sent| Location::parse(&sent.url).is_ok_and(|location| location.is_beside(&server));
    let found: Vec<_> = entries.into_iter().map(|entry| entry.request).filter(is_beside).map(found).collect();
    if found.len() < all {
        stderr::write_line(format_args!(
            "! {} of {all} requests of {} are to other servers than the first one and are not sent.",
            all - found.len(),
            path.display()
        ));
    }
    Ok(found)
}

fn found(sent: Sent) -> Found {
    let mut one = Found { url: sent.url, ..Found::default() };
    one.request.method = Some(sent.method.to_ascii_uppercase());
    one.request.body = sent.post_data.and_then(|body| body.text).filter(|text| !text.is_empty()).map(plain);
    for Field { name, value } in sent.headers {
        // Archives of HTTP/2 have pseudo-fields such as `:authority`.
        if !name.starts_with(':') && !OF_THE_PROTOCOL.iter().any(|own| name.eq_ignore_ascii_case(own)) {
            one.request.add_field(&name, plain(value));
        }
    }
    one
}

/// A text whose braces are no placeholders.
fn plain(text: String) -> String {
    text.replace("{{", "\\{{")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn archive(entries: &serde_json::Value) -> Result<Vec<Found>> {
        parse(&json!({ "log": { "entries": entries } }).to_string(), Path::new("saved.har"))
    }

    #[test]
    fn requests_have_methods_fields_and_bodies_and_other_servers_are_omitted() {
        let found = archive(&json!([
            { "request": { "method": "GET", "url": "https://a.test/x?y=1", "headers": [
                { "name": ":authority", "value": "a.test" }, { "name": "Accept", "value": "*/*" },
                { "name": "Host", "value": "a.test" },
            ] } },
            { "request": { "method": "GET", "url": "https://cdn.test/image", "headers": [] } },
            { "request": { "method": "post", "url": "https://a.test/orders", "headers": [],
                "postData": { "mimeType": "application/json", "text": "{\"a\": \"{{b}}\"}" } } },
        ]))
        .unwrap();
        let urls: Vec<_> = found.iter().map(|one| (one.request.method(), one.url.as_str())).collect();
        assert_eq!(urls, [("GET", "https://a.test/x?y=1"), ("POST", "https://a.test/orders")]);
        assert_eq!(found[0].request.headers.keys().collect::<Vec<_>>(), ["Accept"]);
        assert_eq!(found[1].request.body.as_deref(), Some("{\"a\": \"\\{{b}}\"}"));
    }

    #[test]
    fn a_file_that_is_no_archive_is_refused() {
        let why = |text: &str| format!("{:?}", parse(text, Path::new("saved.har")).unwrap_err());
        assert!(why("{}").contains("saved.har: no HTTP Archive") && why("GET /").contains("log.entries"));
        assert!(format!("{:?}", archive(&json!([])).unwrap_err()).contains("no request"));
    }
}
