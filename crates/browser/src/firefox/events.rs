//! Converts events of BiDi's module `network` to resources.

use serde_json::Value;

use super::connections::Connections;
use crate::resource::{Moments, Resource, text, written};

/// Firefox' errors for requests that the page or the browser itself cancelled.
const GIVEN_UP: [&str; 3] = ["NS_BINDING_ABORTED", "NS_ERROR_ABORT", "NS_ERROR_BLOCKED"];

/// Whether a request leaves the browser.
pub fn leaves(request: &Value) -> bool {
    request["request"]["url"].as_str().is_some_and(|url| url.starts_with("http"))
}

/// The key of a request. A redirect and its target share an identifier and differ in the redirect count.
pub fn key(params: &Value) -> String {
    format!("{}/{}", params["request"]["request"].as_str().unwrap_or_default(), params["redirectCount"])
}

/// The resources in the order of their requests; a redirect and its target are two. Resources from the browser's cache
/// were never sent and are left out.
pub fn resources(events: &[Value], connections: &mut Connections) -> Vec<Resource> {
    let mut entries: Vec<Entry> = Vec::new();
    for event in events {
        let params = &event["params"];
        let key = key(params);
        let known = entries.iter_mut().rev().find(|entry| entry.key == key);
        match (event["method"].as_str().unwrap_or_default(), known) {
            ("network.beforeRequestSent", None) => entries.extend(asked(key, params)),
            ("network.responseStarted", Some(entry)) => {
                entry.answered(params);
                if !entry.cached {
                    entry.resource.connection = connections.next(&entry.resource);
                }
            }
            ("network.responseCompleted", Some(entry)) => entry.completed(params),
            ("network.fetchError", Some(entry)) => entry.failed(params),
            _ => {}
        }
    }
    entries.into_iter().filter(|entry| !entry.cached).map(|entry| entry.resource).collect()
}

struct Entry {
    key: String,
    resource: Resource,
    cached: bool,
}

fn asked(key: String, params: &Value) -> Option<Entry> {
    let asked = &params["request"];
    let (url, method) = (asked["url"].as_str().unwrap_or_default(), asked["method"].as_str().unwrap_or_default());
    let mut resource = Resource::asked(url, method, params["timestamp"].as_f64().unwrap_or_default())?;
    let kind = text(&asked["destination"]).or_else(|| text(&asked["initiatorType"]));
    resource.kind = kind.unwrap_or_else(|| "other".to_owned()).to_lowercase();
    resource.request_headers = headers(&asked["headers"]);
    Some(Entry { key, resource, cached: false })
}

impl Entry {
    fn answered(&mut self, params: &Value) {
        let Self { resource, .. } = self;
        let response = &params["response"];
        resource.status = response["status"].as_u64().and_then(|status| status.try_into().ok());
        resource.mime = text(&response["mimeType"]);
        resource.protocol = text(&response["protocol"]).map(|protocol| protocol.to_lowercase());
        resource.response_headers = headers(&response["headers"]);
        self.cached = response["fromCache"] == true;
        moments(&mut resource.moments, &params["request"]["timings"]);
    }

    fn completed(&mut self, params: &Value) {
        self.answered(params);
        let Self { resource, .. } = self;
        let response = &params["response"];
        resource.received = response["bytesReceived"].as_u64();
        resource.header_bytes = response["headersSize"].as_u64();
        // Only now the event contains all header fields that were sent.
        let left = headers(&params["request"]["headers"]);
        resource.request_header_bytes = written(&resource.method, &resource.url, &left).filter(|_| !left.is_empty());
        if matches!(resource.status, Some(301 | 302 | 303 | 307 | 308)) {
            let place = resource.response_headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
            resource.redirect = place.map(|(_, place)| place.clone());
        }
        if resource.moments.end.is_none() {
            resource.moments.end = params["timestamp"].as_f64();
        }
    }

    fn failed(&mut self, params: &Value) {
        let Self { resource, .. } = self;
        moments(&mut resource.moments, &params["request"]["timings"]);
        resource.moments.end = params["timestamp"].as_f64();
        let words = text(&params["errorText"]).unwrap_or_else(|| "failed".to_owned());
        resource.withdrawn = GIVEN_UP.iter().any(|given_up| words.starts_with(given_up));
        resource.error = Some(words);
    }
}

/// All moments are in milliseconds after `timeOrigin`; 0 means that it did not happen. An existing connection has equal
/// begin and end.
fn moments(moments: &mut Moments, timings: &Value) {
    let origin = timings["timeOrigin"].as_f64().unwrap_or_default();
    let at = |name: &str| timings[name].as_f64().filter(|moment| *moment > 0.0).map(|moment| origin + moment);
    let span = |from: &str, to: &str| Some((at(from)?, at(to)?)).filter(|(from, to)| to > from);
    moments.start = at("requestTime").unwrap_or(moments.start);
    moments.dns = span("dnsStart", "dnsEnd");
    moments.connect = span("connectStart", "connectEnd");
    let secure = at("tlsStart").zip(moments.connect);
    moments.tls = secure.map(|(tls, (_, connected))| (tls, connected)).filter(|(from, to)| to > from);
    moments.request = at("requestStart");
    moments.response = at("responseStart");
    moments.end = at("responseEnd");
}

/// Parses header fields; a value is an object with a type.
fn headers(fields: &Value) -> Vec<(String, String)> {
    let fields = fields.as_array().into_iter().flatten();
    let field = |field: &Value| {
        let (name, value) = (field["name"].as_str()?, field["value"]["value"].as_str()?);
        Some((name.to_owned(), value.to_owned()))
    };
    fields.filter_map(field).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(method: &str, id: &str, url: &str, timings: Value, more: Value) -> Value {
        let mut params = json!({
            "context": "tab", "redirectCount": 0, "timestamp": 1_700_000_000_050.0_f64,
            "request": {
                "request": id, "url": url, "method": "GET", "destination": "image", "timings": timings,
                "headers": [{ "name": "accept", "value": { "type": "string", "value": "*/*" } }]
            }
        });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "method": format!("network.{method}"), "params": params })
    }

    fn response(status: u16) -> Value {
        let location = json!([{ "name": "Location", "value": { "type": "string", "value": "https://localhost/new" } }]);
        json!({ "response": {
            "status": status, "protocol": "h3", "mimeType": "image/png", "fromCache": false, "bytesReceived": 3060,
            "headersSize": 60, "headers": location
        } })
    }

    fn of(events: &[Value]) -> Vec<Resource> {
        resources(events, &mut Connections::default())
    }

    fn timings() -> Value {
        json!({
            "timeOrigin": 1_700_000_000_000.0_f64, "requestTime": 1.0, "dnsStart": 3.0, "dnsEnd": 4.0, "connectStart": 4.0,
            "connectEnd": 34.0, "tlsStart": 14.0, "requestStart": 35.0, "responseStart": 45.0, "responseEnd": 48.0
        })
    }

    #[test]
    fn a_request_on_a_new_connection_has_all_its_phases() {
        let url = "https://localhost:8443/a.png#x";
        let found = of(&[
            event("beforeRequestSent", "1", url, json!({}), json!({})),
            event("responseStarted", "1", url, json!({}), response(200)),
            event("responseCompleted", "1", url, timings(), response(200)),
        ]);
        let [resource] = &found[..] else { panic!("{found:?}") };
        assert_eq!((resource.url.as_str(), resource.host.as_str()), ("https://localhost:8443/a.png", "localhost:8443"));
        assert_eq!((resource.status, resource.protocol.as_deref()), (Some(200), Some("h3")));
        assert_eq!((resource.received, resource.header_bytes), (Some(3060), Some(60)));
        assert_eq!((resource.kind.as_str(), resource.request_headers.len()), ("image", 1));
        let moments = resource.moments.since(1_700_000_000_000.0);
        assert_eq!((moments.queue(), moments.wait(), moments.receive()), (Some(3.0), Some(10.0), Some(3.0)));
        assert_eq!((moments.connect, moments.tls), (Some((4.0, 34.0)), Some((14.0, 34.0))));
    }

    #[test]
    fn a_connection_that_was_there_is_not_opened() {
        let mut kept = timings();
        for moment in ["dnsStart", "dnsEnd", "connectStart", "connectEnd", "tlsStart"] {
            kept[moment] = json!(5.0);
        }
        let url = "https://localhost/a.png";
        let found = of(&[
            event("beforeRequestSent", "1", url, json!({}), json!({})),
            event("responseCompleted", "1", url, kept, response(200)),
        ]);
        assert!(found[0].moments.connect.is_none() && found[0].moments.tls.is_none(), "{found:?}");
    }

    #[test]
    fn redirects_and_failures_are_distinguished() {
        let old = "https://localhost/old";
        let second = json!({ "redirectCount": 1 });
        let mut answer = response(200);
        answer["redirectCount"] = json!(1);
        let found = of(&[
            event("beforeRequestSent", "1", old, json!({}), json!({})),
            event("responseCompleted", "1", old, timings(), response(302)),
            event("beforeRequestSent", "1", "https://localhost/new", json!({}), second),
            event("responseCompleted", "1", "https://localhost/new", timings(), answer),
            event("beforeRequestSent", "2", "data:,x", json!({}), json!({})),
            event("beforeRequestSent", "3", "https://localhost/gone", json!({}), json!({})),
            event(
                "fetchError",
                "3",
                "https://localhost/gone",
                json!({}),
                json!({ "errorText": "NS_ERROR_CONNECTION_REFUSED" }),
            ),
            event("beforeRequestSent", "4", "https://localhost/left", json!({}), json!({})),
            event("fetchError", "4", "https://localhost/left", json!({}), json!({ "errorText": "NS_BINDING_ABORTED" })),
        ]);
        let [old, new, gone, left] = &found[..] else { panic!("{found:?}") };
        assert_eq!((old.status, old.redirect.as_deref()), (Some(302), Some("https://localhost/new")));
        assert_eq!((new.status, new.redirect.as_deref()), (Some(200), None));
        assert_eq!((gone.error.as_deref(), gone.withdrawn), (Some("NS_ERROR_CONNECTION_REFUSED"), false));
        assert!(left.withdrawn);
    }

    #[test]
    fn what_came_from_the_cache_is_no_request() {
        let mut cached = response(200);
        cached["response"]["fromCache"] = json!(true);
        let url = "https://localhost/twice.png";
        let found = of(&[
            event("beforeRequestSent", "1", url, json!({}), json!({})),
            event("responseCompleted", "1", url, json!({}), cached),
        ]);
        assert_eq!(found, []);
    }
}
