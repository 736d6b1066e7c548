//! The cases of h2spec, turned towards clients: `tests/peers/h2spec.toml` names the peer that covers each.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{clients, script};

/// The cases of each group of h2spec.
const CASES: [(&str, usize); 3] = [("generic", 44), ("hpack", 8), ("http2", 95)];

#[derive(Deserialize)]
#[serde(untagged)]
enum Cover {
    Server(String),
    Client {
        client: String,
    },
    Not {
        #[serde(rename = "not")]
        reason: String,
    },
}

#[test]
fn every_case_of_h2spec_has_a_peer_or_a_reason() {
    // A key that occurs twice is an error of TOML.
    let groups: BTreeMap<String, BTreeMap<String, Cover>> = script::parsed("h2spec.toml");
    let counts: Vec<_> = groups.iter().map(|(group, cases)| (group.as_str(), cases.len())).collect();
    assert_eq!(counts, CASES);

    let files = ["http2-correct.toml", "http2-broken.toml"];
    let servers: Vec<_> = files.into_iter().flat_map(script::read).map(|peer| peer.name).collect();
    let clients = clients::names("clients-http2.toml");
    for (group, cases) in &groups {
        for (id, cover) in cases {
            // The cases of a section are numbered from 1.
            let (section, number) = id.split_once('/').unwrap();
            let before = number.parse::<u32>().unwrap() - 1;
            assert!(before == 0 || cases.contains_key(&format!("{section}/{before}")), "{group}/{id} has a gap before");
            let is_covered = match cover {
                Cover::Server(name) => servers.contains(name),
                Cover::Client { client } => clients.contains(client),
                Cover::Not { reason } => !reason.is_empty(),
            };
            assert!(is_covered, "{group}/{id} names no peer");
        }
    }
}
