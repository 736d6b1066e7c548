//! Loads as an HTTP Archive 1.2, the format of browsers' developer tools and most waterfall viewers.

use jiff::Timestamp;
use serde_json::{Value, json};
use url::Url;
use wirelab_model::outcome::Outcome;

use crate::load::Load;
use crate::resource::{Resource, length};

/// A load and its title in the archive.
#[derive(Debug, Clone, Copy)]
pub struct Titled<'a> {
    /// For example `chromium h3 load 1: https://localhost/`.
    pub title: &'a str,
    pub load: &'a Load,
}

/// The archive, with one page per load. Unknown values are -1, as the format defines, or left out.
#[must_use]
pub fn har(version: &str, loads: &[Titled<'_>]) -> Value {
    let begun = || loads.iter().filter(|titled| !titled.load.resources.is_empty());
    let id = |number: usize| format!("load_{}", number + 1);
    let pages: Vec<_> = begun().enumerate().map(|(number, titled)| page(&id(number), titled)).collect();
    let entries = begun().enumerate().flat_map(|(number, titled)| {
        titled.load.resources.iter().map(move |resource| entry(&id(number), titled.load.zero, resource))
    });
    json!({
        "log": {
            "version": "1.2",
            "creator": { "name": "wirelab", "version": version },
            "pages": pages,
            "entries": entries.collect::<Vec<_>>(),
        }
    })
}

fn page(id: &str, titled: &Titled<'_>) -> Value {
    let load = titled.load;
    let moment =
        |of: fn(&crate::Timeline) -> f64| load.timeline.as_ref().map(of).filter(|at| *at > 0.0).unwrap_or(-1.0);
    let mut page = json!({
        "startedDateTime": moment_of_day(load.zero),
        "id": id,
        "title": titled.title,
        "pageTimings": { "onContentLoad": moment(|page| page.content_loaded), "onLoad": moment(|page| page.loaded) },
    });
    if let Outcome::Failed { blame, reason } = &load.outcome {
        page["comment"] = json!(format!("no sample; {blame}: {reason}"));
    }
    page
}

fn entry(page: &str, zero: f64, resource: &Resource) -> Value {
    let moments = &resource.moments;
    let version = version(resource.protocol.as_deref());
    let total = moments.end.map_or(0.0, |end| (end - moments.start).max(0.0));
    let body = resource.received.map(|received| received.saturating_sub(resource.header_bytes.unwrap_or_default()));
    let mut entry = json!({
        "pageref": page,
        "startedDateTime": moment_of_day(zero + moments.start),
        "time": round(total),
        "request": {
            "method": resource.method,
            "url": resource.url,
            "httpVersion": version,
            "cookies": [],
            "headers": headers(&resource.request_headers),
            "queryString": query(&resource.url),
            "headersSize": -1,
            "bodySize": -1,
        },
        "response": {
            "status": resource.status.unwrap_or(0),
            "statusText": "",
            "httpVersion": version,
            "cookies": [],
            "headers": headers(&resource.response_headers),
            "content": content(resource, body),
            "redirectURL": resource.redirect.as_deref().unwrap_or_default(),
            "headersSize": number(resource.header_bytes),
            "bodySize": number(body),
        },
        "cache": {},
        "timings": timings(resource, total),
        "_resourceType": resource.kind,
    });
    if let Some(connection) = resource.connection {
        entry["connection"] = json!(connection.to_string());
    }
    if let Some(error) = &resource.error {
        entry["comment"] = json!(error);
    }
    entry
}

/// The body, if it was kept; otherwise its size as transferred.
fn content(resource: &Resource, transferred: Option<u64>) -> Value {
    let mut content =
        json!({ "size": number(transferred), "mimeType": resource.mime.as_deref().unwrap_or("x-unknown") });
    if let Some(body) = &resource.body {
        content["size"] = json!(body.size());
        content["text"] = json!(body.text);
        if body.is_base64 {
            content["encoding"] = json!("base64");
        }
    }
    content
}

/// The phases of a request. They add up to the total; TLS is part of connecting. Time before the request without a
/// known phase counts as blocked, time after it as receiving.
fn timings(resource: &Resource, total: f64) -> Value {
    let moments = &resource.moments;
    let (dns, connect) = (length(moments.dns), length(moments.connect));
    let wait = moments.wait().unwrap_or(0.0);
    let before = moments.request.map_or(total, |request| (request - moments.start).clamp(0.0, total));
    let blocked = before - dns.unwrap_or(0.0) - connect.unwrap_or(0.0);
    let mut timings = json!({
        "blocked": round(blocked.max(0.0)),
        "dns": dns.map_or(-1.0, round),
        "connect": connect.map_or(-1.0, round),
        "ssl": length(moments.tls).map_or(-1.0, round),
        "send": 0,
        "wait": round(wait),
        "receive": round((total - before - wait).max(0.0)),
    });
    if moments.response.is_none() {
        timings["comment"] = json!("when the response began is not known: `receive` has the wait in it");
    }
    timings
}

/// The name of the HTTP version in developer tools.
fn version(protocol: Option<&str>) -> &str {
    match protocol {
        Some("http/1.1") => "HTTP/1.1",
        Some("h2") => "HTTP/2",
        Some("h3") => "HTTP/3",
        Some(other) => other,
        None => "unknown",
    }
}

fn headers(fields: &[(String, String)]) -> Vec<Value> {
    fields.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn query(url: &str) -> Vec<Value> {
    let Ok(url) = Url::parse(url) else { return Vec::new() };
    url.query_pairs().map(|(name, value)| json!({ "name": name, "value": value })).collect()
}

fn number(count: Option<u64>) -> Value {
    count.map_or_else(|| json!(-1), |count| json!(count))
}

fn round(milliseconds: f64) -> f64 {
    (milliseconds * 1000.0).round() / 1000.0
}

/// Milliseconds of the Unix epoch as ISO 8601.
fn moment_of_day(milliseconds: f64) -> String {
    let at = Timestamp::from_microsecond((milliseconds * 1000.0) as i64).unwrap_or_default();
    format!("{at:.3}")
}
