//! Converts events of CDP's domain `Network` to resources.
//!
//! CDP's clock is monotonic; the first request of a load carries the time of day, too.

use std::collections::HashMap;

use serde_json::Value;

use crate::resource::{Moments, Resource, text, written};

/// Whether a request leaves the browser.
pub fn leaves(request: &Value) -> bool {
    request["request"]["url"].as_str().is_some_and(|url| url.starts_with("http"))
}

/// The resources in the order of their requests; a redirect and its target are two. Resources from the browser's cache
/// were never sent and are left out.
pub fn resources(events: &[Value]) -> Vec<Resource> {
    exchanges(events).into_iter().map(|(resource, _)| resource).collect()
}

/// The resources, each with the session and the request id that identify its body to Chromium.
pub fn exchanges(events: &[Value]) -> Vec<(Resource, (String, String))> {
    let mut found = Found::default();
    for event in events {
        found.session = event["sessionId"].as_str().unwrap_or_default().to_owned();
        found.take(event["method"].as_str().unwrap_or_default(), &event["params"]);
    }
    found.count_headers();
    let sent = found.entries.into_iter().filter(|entry| !entry.cached);
    sent.map(|entry| (entry.resource, (entry.session, entry.request))).collect()
}

#[derive(Default)]
struct Found {
    /// The session of the current event.
    session: String,
    entries: Vec<Entry>,
    /// The sent header fields by request id; a redirected request has several lists.
    left: HashMap<String, Vec<Vec<(String, String)>>>,
    /// Milliseconds to add to the monotonic clock.
    epoch: Option<f64>,
}

struct Entry {
    session: String,
    request: String,
    resource: Resource,
    cached: bool,
    /// Whether early hints caused the request, before the page asked for it.
    hinted: bool,
}

impl Found {
    fn take(&mut self, method: &str, params: &Value) {
        let request = params["requestId"].as_str().unwrap_or_default().to_owned();
        let now = params["timestamp"].as_f64().map(|seconds| seconds * 1000.0);
        match method {
            "Network.requestWillBeSent" => self.asked(request, params, now.unwrap_or_default()),
            "Network.requestWillBeSentExtraInfo" => {
                self.left.entry(request).or_default().push(headers(&params["headers"]))
            }
            "Network.requestServedFromCache" => self.last(&request, |entry, _| entry.cached = true),
            "Network.responseReceived" => self.last(&request, |entry, epoch| {
                answered(&mut entry.resource, &params["response"], epoch);
                let response = &params["response"];
                entry.hinted = response["fromEarlyHints"] == true;
                let cached = response["fromDiskCache"] == true && !entry.hinted;
                entry.cached |= cached || response["fromServiceWorker"] == true;
                if entry.hinted {
                    hinted(&mut entry.resource, response);
                }
            }),
            "Network.loadingFinished" => self.last(&request, |entry, epoch| {
                entry.resource.moments.end = now.map(|now| now + epoch);
                entry.resource.received = bytes(&params["encodedDataLength"]).filter(|_| !entry.hinted);
            }),
            "Network.loadingFailed" => self.last(&request, |entry, epoch| {
                let resource = &mut entry.resource;
                resource.moments.end = now.map(|now| now + epoch);
                let why = text(&params["blockedReason"]).map(|why| format!("blocked: {why}"));
                resource.withdrawn = params["canceled"] == true || why.is_some();
                resource.error = why.or_else(|| text(&params["errorText"])).or_else(|| Some("failed".to_owned()));
            }),
            _ => {}
        }
    }

    fn asked(&mut self, request: String, params: &Value, now: f64) {
        let epoch = *self.epoch.get_or_insert_with(|| params["wallTime"].as_f64().unwrap_or_default() * 1000.0 - now);
        let redirect = &params["redirectResponse"];
        if !redirect.is_null() {
            self.last(&request, |entry, epoch| {
                let resource = &mut entry.resource;
                answered(resource, redirect, epoch);
                resource.redirect = text(&params["request"]["url"]);
                resource.received = bytes(&redirect["encodedDataLength"]);
                resource.moments.end = Some(now + epoch);
            });
        }
        let asked = &params["request"];
        let (url, method) = (asked["url"].as_str().unwrap_or_default(), asked["method"].as_str().unwrap_or_default());
        let Some(mut resource) = Resource::asked(url, method, now + epoch) else { return };
        resource.kind = params["type"].as_str().unwrap_or("other").to_lowercase();
        resource.request_headers = headers(&asked["headers"]);
        let session = self.session.clone();
        self.entries.push(Entry { session, request, resource, cached: false, hinted: false });
    }

    /// Assigns the sent header fields. They arrive in separate events, before or after those of the request, but in the
    /// same order. If the numbers of lists and requests differ, the assignment is unknown.
    fn count_headers(&mut self) {
        for (request, left) in &self.left {
            let mut entries: Vec<_> = self.entries.iter_mut().filter(|entry| entry.request == *request).collect();
            if entries.len() == left.len() {
                for (entry, fields) in entries.iter_mut().zip(left) {
                    let resource = &mut entry.resource;
                    resource.request_header_bytes = written(&resource.method, &resource.url, fields);
                }
            }
        }
    }

    /// Changes the newest entry of a request id, which is the one after the last redirect.
    fn last(&mut self, request: &str, change: impl FnOnce(&mut Entry, f64)) {
        let epoch = self.epoch.unwrap_or_default();
        if let Some(entry) = self.entries.iter_mut().rev().find(|entry| entry.request == request) {
            change(entry, epoch);
        }
    }
}

fn answered(resource: &mut Resource, response: &Value, epoch: f64) {
    resource.status = response["status"].as_u64().and_then(|status| status.try_into().ok());
    resource.mime = text(&response["mimeType"]);
    resource.protocol = text(&response["protocol"]).map(|protocol| protocol.to_lowercase());
    resource.connection = response["connectionId"].as_f64().filter(|number| *number > 0.0).map(|number| number as u64);
    resource.response_headers = headers(&response["headers"]);
    // So far, only the header was received.
    resource.header_bytes = bytes(&response["encodedDataLength"]);
    moments(&mut resource.moments, &response["timing"], epoch);
}

/// Corrects a resource that Chromium requested because of early hints. Chromium puts it into its cache and reports it
/// when the page takes it from there. Of the exchange itself it reports only the start of the response.
fn hinted(resource: &mut Resource, response: &Value) {
    let begun = response["responseTime"].as_f64();
    let start = resource.moments.start;
    // The page asked later than the request was sent; the start of the response bounds the request's start.
    resource.moments = Moments { start: begun.unwrap_or(start).min(start), response: begun, ..Moments::default() };
    resource.header_bytes = None;
}

/// `timing` has one moment in seconds and the others in milliseconds after it; -1 means that it did not happen.
fn moments(moments: &mut Moments, timing: &Value, epoch: f64) {
    let Some(base) = timing["requestTime"].as_f64().map(|seconds| seconds * 1000.0 + epoch) else { return };
    let at = |name: &str| timing[name].as_f64().filter(|offset| *offset >= 0.0).map(|offset| base + offset);
    let span = |from: &str, to: &str| Some((at(from)?, at(to)?));
    moments.dns = span("dnsStart", "dnsEnd");
    moments.connect = span("connectStart", "connectEnd");
    moments.tls = span("sslStart", "sslEnd");
    moments.request = at("sendStart");
    // The end of the headers, because their start may belong to an interim response.
    moments.response = at("receiveHeadersEnd");
}

fn headers(fields: &Value) -> Vec<(String, String)> {
    let fields = fields.as_object().into_iter().flatten();
    // Several fields of one name arrive as lines of one value.
    let lines = |(name, value): (&String, &Value)| {
        let values = value.as_str().unwrap_or_default().split('\n').map(str::to_owned);
        values.map(|value| (name.clone(), value)).collect::<Vec<_>>()
    };
    fields.flat_map(lines).collect()
}

/// A count of bytes, which CDP reports as a floating-point number.
fn bytes(value: &Value) -> Option<u64> {
    value.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(method: &str, params: Value) -> Value {
        json!({ "method": format!("Network.{method}"), "params": params, "sessionId": "S" })
    }

    fn asked(id: &str, url: &str, timestamp: f64, more: Value) -> Value {
        let mut params = json!({
            "requestId": id, "timestamp": timestamp, "wallTime": 1_700_000_000.0 + timestamp - 50.0, "type": "Image",
            "request": { "url": url, "method": "GET", "headers": { "accept": "*/*" } }
        });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event("requestWillBeSent", params)
    }

    fn response(status: u16, timing: Value) -> Value {
        json!({
            "status": status, "mimeType": "image/png", "protocol": "h2", "connectionId": 17.0, "encodedDataLength": 60.0,
            "headers": { "set-cookie": "a\nb" }, "timing": timing
        })
    }

    #[test]
    fn a_request_on_a_new_connection_has_all_its_phases() {
        let timing = json!({
            "requestTime": 50.004, "dnsStart": 1.0, "dnsEnd": 2.0, "connectStart": 2.0, "connectEnd": 32.0, "sslStart": 12.0,
            "sslEnd": 32.0, "sendStart": 33.0, "sendEnd": 33.1, "receiveHeadersStart": 42.5, "receiveHeadersEnd": 43.0
        });
        let found = resources(&[
            asked("1", "https://localhost:8443/a.png#x", 50.0, json!({})),
            event("responseReceived", json!({ "requestId": "1", "response": response(200, timing) })),
            event("loadingFinished", json!({ "requestId": "1", "timestamp": 50.05, "encodedDataLength": 3060.0 })),
        ]);
        let [resource] = &found[..] else { panic!("{found:?}") };
        assert_eq!((resource.url.as_str(), resource.host.as_str()), ("https://localhost:8443/a.png", "localhost:8443"));
        assert_eq!(
            (resource.status, resource.protocol.as_deref(), resource.connection),
            (Some(200), Some("h2"), Some(17))
        );
        assert_eq!((resource.received, resource.header_bytes), (Some(3060), Some(60)));
        assert_eq!(resource.response_headers.len(), 2, "one field each: {:?}", resource.response_headers);
        let moments = resource.moments.since(1_700_000_000_000.0);
        let close = |value: Option<f64>, expected: f64| assert!((value.unwrap() - expected).abs() < 0.01, "{value:?}");
        close(moments.queue(), 6.0);
        close(crate::resource::length(moments.connect), 30.0);
        close(crate::resource::length(moments.tls), 20.0);
        close(moments.wait(), 10.0);
        close(moments.receive(), 3.0);
        close(moments.end, 50.0);
    }

    #[test]
    fn a_redirect_and_its_target_are_two_requests_and_a_reused_connection_is_not_opened() {
        let reused = json!({
            "requestTime": 50.0, "dnsStart": -1, "dnsEnd": -1, "connectStart": -1, "connectEnd": -1, "sslStart": -1, "sslEnd": -1,
            "sendStart": 0.5, "receiveHeadersEnd": 9.0
        });
        let redirect = json!({ "redirectResponse": response(302, reused.clone()) });
        let events = [
            asked("1", "https://localhost/old", 50.0, json!({})),
            asked("1", "https://localhost/new", 50.01, redirect),
            event("responseReceived", json!({ "requestId": "1", "response": response(200, reused) })),
        ];
        let found = resources(&events);
        let [old, new] = &found[..] else { panic!("{found:?}") };
        let numbers: Vec<_> = exchanges(&events).into_iter().map(|(_, number)| number).collect();
        assert_eq!(numbers, [("S".to_owned(), "1".to_owned()), ("S".to_owned(), "1".to_owned())]);
        assert_eq!((old.status, old.redirect.as_deref()), (Some(302), Some("https://localhost/new")));
        assert_eq!((new.status, new.redirect.as_deref(), new.moments.connect.is_some()), (Some(200), None, false));
        assert_eq!((new.moments.end, new.received), (None, None), "it is not complete");
    }

    #[test]
    fn the_fields_that_left_are_those_of_the_request_that_they_came_with() {
        let left =
            |value: &str| event("requestWillBeSentExtraInfo", json!({ "requestId": "1", "headers": { "x": value } }));
        let redirect = json!({ "redirectResponse": { "status": 302 } });
        let first = asked("1", "https://localhost/", 50.0, json!({}));
        let second = asked("1", "https://localhost/", 50.1, redirect);
        let bytes = |events: &[Value]| resources(events).iter().map(|one| one.request_header_bytes).collect::<Vec<_>>();
        let short = "GET / HTTP/1.1\r\nhost: localhost\r\nx: 1\r\n\r\n".len() as u64;
        assert_eq!(bytes(&[first.clone(), left("1"), left("22"), second.clone()]), [Some(short), Some(short + 1)]);
        assert_eq!(bytes(&[first, left("1"), second]), [None, None]);
    }

    #[test]
    fn what_was_hinted_at_is_a_request_though_the_page_takes_it_from_the_cache() {
        let cached = |more: Value| {
            let mut response =
                response(200, json!({ "requestTime": 50.0, "sendStart": 0.1, "receiveHeadersEnd": 0.2 }));
            response.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            response
        };
        let hints = json!({ "fromDiskCache": true, "fromEarlyHints": true, "responseTime": 1_699_999_999_400.0_f64, "connectionId": 0 });
        let ended =
            |id: &str| event("loadingFinished", json!({ "requestId": id, "timestamp": 50.05, "encodedDataLength": 0 }));
        let found = resources(&[
            asked("1", "https://localhost/a.css", 50.0, json!({})),
            event("responseReceived", json!({ "requestId": "1", "response": cached(hints) })),
            ended("1"),
            asked("2", "https://localhost/b.css", 50.0, json!({})),
            event(
                "responseReceived",
                json!({ "requestId": "2", "response": cached(json!({ "fromDiskCache": true })) }),
            ),
            ended("2"),
        ]);
        let [hinted] = &found[..] else { panic!("{found:?}") };
        let moments = hinted.moments.since(1_700_000_000_000.0);
        assert_eq!((moments.start, moments.request, moments.response), (-600.0, None, Some(-600.0)));
        assert!((moments.end.unwrap() - 50.0).abs() < 0.01, "{moments:?}");
        // Sizes and connections from the cache are not those of the transfer.
        assert_eq!((hinted.received, hinted.header_bytes, hinted.connection), (None, None, None));
    }

    #[test]
    fn what_was_not_sent_is_no_request_and_what_failed_says_why() {
        let found = resources(&[
            asked("1", "data:image/png;base64,AA==", 50.0, json!({})),
            asked("2", "https://localhost/twice.png", 50.0, json!({})),
            event("requestServedFromCache", json!({ "requestId": "2" })),
            asked("3", "https://localhost/gone", 50.0, json!({})),
            event(
                "loadingFailed",
                json!({ "requestId": "3", "timestamp": 51.0, "errorText": "net::ERR_CONNECTION_REFUSED" }),
            ),
            asked("4", "https://localhost/kept", 50.0, json!({})),
            event(
                "loadingFailed",
                json!({
                    "requestId": "4", "timestamp": 51.0, "errorText": "net::ERR_BLOCKED_BY_RESPONSE", "blockedReason": "corp"
                }),
            ),
            event("loadingFinished", json!({ "requestId": "never asked", "timestamp": 51.0 })),
        ]);
        let [refused, kept] = &found[..] else { panic!("{found:?}") };
        assert_eq!((refused.error.as_deref(), refused.withdrawn), (Some("net::ERR_CONNECTION_REFUSED"), false));
        assert_eq!((kept.error.as_deref(), kept.withdrawn), (Some("blocked: corp"), true));
    }
}
