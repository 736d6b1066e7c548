//! Firefox' preferences: force a protocol, and suppress traffic to hosts other than the page's.

use std::fmt::Write;
use std::net::Ipv4Addr;

use serde_json::{Value, json};
use wirelab_model::protocol::Protocol;

use crate::page::{Origin, Setup};

/// In milliseconds: longer than a load may take.
const AN_HOUR: u32 = 3_600_000;

/// The file `user.js` of a profile.
pub fn user_js(setup: &Setup) -> String {
    let mut text = String::new();
    for (name, value) in quiet().into_iter().chain(forcing(setup)) {
        let _ = writeln!(text, "user_pref({}, {value});", json!(name));
    }
    text
}

/// Preferences for every setup: no background traffic (updates, lists, connection checks, prefetching).
fn quiet() -> Vec<(&'static str, Value)> {
    vec![
        ("app.normandy.enabled", json!(false)),
        ("app.update.disabledForTesting", json!(true)),
        ("browser.aboutConfig.showWarning", json!(false)),
        // The browser requests a page's icon by itself, and Chromium does not report that request.
        ("browser.chrome.site_icons", json!(false)),
        ("browser.contentblocking.database.enabled", json!(false)),
        ("browser.newtabpage.enabled", json!(false)),
        ("browser.region.network.url", json!("")),
        ("browser.safebrowsing.blockedURIs.enabled", json!(false)),
        ("browser.safebrowsing.downloads.enabled", json!(false)),
        ("browser.safebrowsing.malware.enabled", json!(false)),
        ("browser.safebrowsing.phishing.enabled", json!(false)),
        ("browser.search.update", json!(false)),
        ("browser.shell.checkDefaultBrowser", json!(false)),
        ("browser.startup.homepage_override.mstone", json!("ignore")),
        ("browser.startup.page", json!(0)),
        ("datareporting.healthreport.uploadEnabled", json!(false)),
        ("datareporting.policy.dataSubmissionEnabled", json!(false)),
        ("dom.push.connection.enabled", json!(false)),
        ("dom.security.https_first", json!(false)),
        ("extensions.getAddons.cache.enabled", json!(false)),
        ("extensions.systemAddon.update.enabled", json!(false)),
        ("extensions.update.enabled", json!(false)),
        ("media.gmp-manager.updateEnabled", json!(false)),
        ("network.captive-portal-service.enabled", json!(false)),
        ("network.connectivity-service.enabled", json!(false)),
        ("network.dns.disablePrefetch", json!(true)),
        ("network.http.speculative-parallel-limit", json!(0)),
        ("network.prefetch-next", json!(false)),
        ("network.proxy.type", json!(0)),
        // Uses the system's resolver, as other programs do.
        ("network.trr.mode", json!(5)),
        // Exact times in timelines.
        ("privacy.reduceTimerPrecision", json!(false)),
        ("privacy.trackingprotection.enabled", json!(false)),
        ("security.OCSP.enabled", json!(0)),
        ("services.settings.server", json!("data:,#remote-settings-dummy/v1")),
        ("toolkit.telemetry.server", json!("data:,")),
        ("toolkit.telemetry.unified", json!(false)),
    ]
}

/// The preferences that leave no other protocol. Firefox uses HTTP/3 for hosts with a known alternative service, but
/// not with authorities that are not publicly trusted, unless configured otherwise.
fn forcing(setup: &Setup) -> Vec<(&'static str, Value)> {
    let mut preferences = match setup.protocol {
        Protocol::H3 => {
            let services = setup.origins.iter().map(|origin| format!("{};h3=:{}", origin.host, origin.port));
            vec![
                ("network.http.http3.enable", json!(true)),
                ("network.http.http3.disable_when_third_party_roots_found", json!(false)),
                ("network.http.http3.alt-svc-mapping-for-testing", json!(services.collect::<Vec<_>>().join(","))),
                // By default, Firefox also connects by TCP after 100 ms and uses what is ready first. Loads with slow
                // handshakes would fail, and only the fast ones would be samples.
                ("network.http.http3.backup_timer_delay", json!(AN_HOUR)),
            ]
        }
        Protocol::H2 => vec![("network.http.http3.enable", json!(false))],
        _ => vec![("network.http.http2.enabled", json!(false)), ("network.http.http3.enable", json!(false))],
    };
    if setup.logs.qlog.is_some() {
        preferences.push(("network.http.http3.enable_qlog", json!(true)));
    }
    // `localhost` has two addresses, and the server may listen at one.
    if setup.is_local() && setup.origins.iter().all(|origin| origin.address.is_ipv4()) {
        preferences.push(("network.dns.disableIPv6", json!(true)));
    }
    // A name of this machine that no resolver knows is mapped to 127.0.0.1.
    let is_named = |origin: &&Origin| origin.address == Ipv4Addr::LOCALHOST && !origin.is_literal();
    let local: Vec<_> = setup.origins.iter().filter(is_named).map(|origin| origin.host.as_str()).collect();
    if !local.is_empty() {
        preferences.push(("network.dns.localDomains", json!(local.join(","))));
    }
    preferences
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Browser, Logs};

    fn text(protocol: Protocol, address: &str) -> String {
        let origin = |host: &str, port| Origin { host: host.to_owned(), port, address: address.parse().unwrap() };
        let origins = vec![origin("a.test", 443), origin("b.test", 8443)];
        user_js(&Setup {
            browser: Browser::Firefox,
            program: "firefox".into(),
            protocol,
            origins,
            authority: None,
            logs: Logs::default(),
        })
    }

    #[test]
    fn each_protocol_is_the_only_one_left() {
        let h1 = text(Protocol::H1, "192.0.2.1");
        assert!(h1.contains("user_pref(\"network.http.http2.enabled\", false);\n"), "{h1}");
        for protocol in [Protocol::H1, Protocol::H2] {
            assert!(text(protocol, "192.0.2.1").contains("user_pref(\"network.http.http3.enable\", false);\n"));
        }
        let h3 = text(Protocol::H3, "192.0.2.1");
        assert!(h3.contains("alt-svc-mapping-for-testing\", \"a.test;h3=:443,b.test;h3=:8443\");\n"), "{h3}");
        assert!(h3.contains("disable_when_third_party_roots_found\", false);\n"), "{h3}");
    }

    #[test]
    fn names_of_this_machine_lead_to_it() {
        let preference = "user_pref(\"network.dns.localDomains\", \"a.test,b.test\");\n";
        assert!(text(Protocol::H2, "127.0.0.1").contains(preference));
        assert!(!text(Protocol::H2, "192.0.2.1").contains("localDomains"));
    }

    #[test]
    fn only_on_this_machine_is_one_family_of_addresses_enough() {
        assert!(text(Protocol::H2, "127.0.0.1").contains("disableIPv6"));
        assert!(!text(Protocol::H2, "192.0.2.1").contains("disableIPv6"));
        assert!(!text(Protocol::H2, "::1").contains("disableIPv6"));
    }
}
