//! Finds the connection of each response.
//!
//! WebDriver BiDi does not report connections. Its connect times are no substitute: a request that causes a connection
//! may be sent on another one that is ready sooner, and over HTTP/2 all connections that were started meanwhile end
//! unused. Six connections over HTTP/1.1 would look like three, and one over HTTP/2 like six. Therefore an observer in
//! Firefox' privileged scope, which `--remote-allow-system-access` opens to BiDi, records the addresses and ports of
//! each response's connection.

use std::collections::{HashMap, VecDeque};

use serde::Deserialize;

use crate::resource::Resource;

/// The flag that opens Firefox' privileged scope. Versions without it ignore it.
pub const FLAG: &str = "--remote-allow-system-access";

/// JavaScript that starts to record responses. Firefox notifies observers of responses in the order in which BiDi
/// reports them.
pub const NOTE: &str = r#"
    (() => {
        const noted = [];
        const observer = {
            observe(channel) {
                channel.QueryInterface(Ci.nsIHttpChannel).QueryInterface(Ci.nsIHttpChannelInternal);
                let ends = null;
                try {
                    ends = `${channel.localAddress} ${channel.localPort} ${channel.remoteAddress} ${channel.remotePort}`;
                } catch {
                    // It came over none.
                }
                noted.push({ method: channel.requestMethod, url: channel.URI.spec, ends });
            },
        };
        Services.obs.addObserver(observer, "http-on-examine-response");
        globalThis.wirelab = { observer, take: () => JSON.stringify(noted.splice(0)) };
    })()
"#;

/// JavaScript that returns the responses recorded since the last call.
pub const TAKE: &str = "wirelab.take()";

/// A recorded response.
#[derive(Debug, Deserialize)]
struct Noted {
    method: String,
    url: String,
    /// Addresses and ports of both ends of its connection.
    ends: Option<String>,
}

/// Assigns numbers to connections for the lifetime of a Firefox: a connection that two loads share has one number.
#[derive(Debug, Default)]
pub struct Numbers(HashMap<String, u64>);

impl Numbers {
    /// The connections of a load's responses, from the recorded JSON.
    pub fn of(&mut self, noted: &str) -> Connections {
        let mut connections = Connections::default();
        for noted in serde_json::from_str::<Vec<Noted>>(noted).unwrap_or_default() {
            let number = noted.ends.map(|ends| {
                let next = self.0.len() as u64 + 1;
                *self.0.entry(ends).or_insert(next)
            });
            // Normalises the address as for BiDi's events.
            if let Some(Resource { url, method, .. }) = Resource::asked(&noted.url, &noted.method, 0.0) {
                connections.0.entry((method, url)).or_default().push_back(number);
            }
        }
        connections
    }
}

/// The connections of a load's responses: by method and address, in order of arrival.
#[derive(Debug, Default)]
pub struct Connections(HashMap<(String, String), VecDeque<Option<u64>>>);

impl Connections {
    /// The connection of the next response with this method and address; `None` if it was not recorded.
    pub fn next(&mut self, resource: &Resource) -> Option<u64> {
        self.0.get_mut(&(resource.method.clone(), resource.url.clone()))?.pop_front()?
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_of_the_same_ends_came_over_one_connection_also_in_another_load() {
        let mut numbers = Numbers::default();
        let mut of = |noted: &str, asked: &[(&str, &str)]| -> Vec<Option<u64>> {
            let mut connections = numbers.of(noted);
            asked.iter().map(|(method, url)| connections.next(&Resource::asked(url, method, 1.0).unwrap())).collect()
        };
        let noted = r#"[
            {"method": "GET", "url": "https://a/x#part", "ends": "10.0.0.1 4001 10.0.0.2 443"},
            {"method": "GET", "url": "https://b/", "ends": "10.0.0.1 4001 10.0.0.3 443"},
            {"method": "GET", "url": "https://a/x", "ends": "10.0.0.1 4002 10.0.0.2 443"},
            {"method": "POST", "url": "https://a/x", "ends": null}
        ]"#;
        let asked = [
            ("GET", "https://a/x"),
            ("POST", "https://a/x"),
            ("GET", "https://a/x"),
            ("GET", "https://a/x"),
            ("GET", "https://b"),
        ];
        assert_eq!(of(noted, &asked), [Some(1), None, Some(3), None, Some(2)]);
        let later = r#"[{"method": "GET", "url": "https://a/x", "ends": "10.0.0.1 4002 10.0.0.2 443"}]"#;
        assert_eq!(of(later, &asked[..1]), [Some(3)], "it was there before");
        assert_eq!(of("", &asked[..1]), [None], "a Firefox that does not say");
    }
}
