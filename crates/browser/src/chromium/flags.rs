//! Chromium's command line: forces a protocol, and suppresses traffic to hosts other than the page's.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

use wirelab_model::protocol::Protocol;

use crate::logs::unused;
use crate::page::{Origin, Setup};

/// Flags for every setup: headless, no first run, and no background traffic (updates, reports, lists, suggestions).
const ALWAYS: &[&str] = &[
    "--headless=new",
    "--remote-debugging-port=0",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-component-extensions-with-background-pages",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-extensions",
    "--disable-sync",
    "--disable-features=HttpsUpgrades,MediaRouter,OptimizationHints,Translate",
    "--metrics-recording-only",
    "--mute-audio",
    "--hide-scrollbars",
    "--no-proxy-server",
    "--password-store=basic",
    // A page in the background would be painted late.
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
];

/// The flags for a setup.
pub fn flags(setup: &Setup, profile: &Path, is_root: bool) -> Vec<OsString> {
    let mut flags: Vec<OsString> = ALWAYS.iter().map(OsString::from).collect();
    let mut folder = OsString::from("--user-data-dir=");
    folder.push(profile);
    flags.push(folder);
    if is_root {
        flags.push("--no-sandbox".into());
    }
    flags.extend(forcing(setup).into_iter().map(OsString::from));
    flags.extend(rules(setup).map(|rules| OsString::from(format!("--host-resolver-rules={rules}"))));
    if let Some(folder) = &setup.logs.netlog {
        let mut netlog = OsString::from("--log-net-log=");
        netlog.push(unused(folder, &format!("{}-{}", setup.browser, setup.protocol), "json"));
        flags.push(netlog);
    }
    flags.push("about:blank".into());
    flags
}

/// The flags that leave no other protocol. Without Alt-Svc from a publicly trusted authority, Chromium uses HTTP/3 only
/// if forced to, and then from the first request on.
fn forcing(setup: &Setup) -> Vec<String> {
    match setup.protocol {
        Protocol::H3 => {
            let origins: Vec<_> =
                setup.origins.iter().map(|origin| format!("{}:{}", origin.host, origin.port)).collect();
            vec!["--enable-quic".to_owned(), format!("--origin-to-force-quic-on={}", origins.join(","))]
        }
        Protocol::H2 => vec!["--disable-quic".to_owned()],
        _ => vec!["--disable-http2".to_owned(), "--disable-quic".to_owned()],
    }
}

/// Maps names of this machine to the resolved address: `localhost` has two, and the server may listen at one. If only
/// this machine is needed, all other names are blocked.
fn rules(setup: &Setup) -> Option<String> {
    let local = setup.origins.iter().filter(|origin| origin.is_local());
    let (literals, names): (Vec<&Origin>, Vec<&Origin>) = local.partition(|origin| origin.is_literal());
    let mut rules: Vec<String> =
        names.iter().map(|origin| format!("MAP {} {}", origin.host, host(origin.address))).collect();
    if setup.is_local() {
        rules.push("MAP * ~NOTFOUND".to_owned());
        rules.extend(names.iter().map(|origin| format!("EXCLUDE {}", host(origin.address))));
        rules.extend(literals.iter().map(|origin| format!("EXCLUDE {}", origin.host)));
    }
    (!rules.is_empty()).then(|| rules.join(", "))
}

/// An address as the host of a URL.
fn host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Browser, Logs};

    fn setup(protocol: Protocol, hosts: &[(&str, &str)]) -> Setup {
        let origin = |(host, address): &(&str, &str)| Origin {
            host: (*host).to_owned(),
            port: 8443,
            address: address.parse().unwrap(),
        };
        let origins = hosts.iter().map(origin).collect();
        Setup {
            browser: Browser::Chromium,
            program: "chromium".into(),
            protocol,
            origins,
            authority: None,
            logs: Logs::default(),
        }
    }

    #[test]
    fn each_protocol_is_the_only_one_left() {
        let hosts = [("a.test", "192.0.2.1"), ("b.test", "192.0.2.2")];
        assert_eq!(forcing(&setup(Protocol::H1, &hosts)), ["--disable-http2", "--disable-quic"]);
        assert_eq!(forcing(&setup(Protocol::H2, &hosts)), ["--disable-quic"]);
        assert_eq!(
            forcing(&setup(Protocol::H3, &hosts)),
            ["--enable-quic", "--origin-to-force-quic-on=a.test:8443,b.test:8443"]
        );
    }

    #[test]
    fn names_of_this_machine_are_looked_up_nowhere_and_no_others_are() {
        let rules = |hosts: &[(&str, &str)]| rules(&setup(Protocol::H2, hosts));
        assert_eq!(
            rules(&[("localhost", "127.0.0.1")]).unwrap(),
            "MAP localhost 127.0.0.1, MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
        );
        assert_eq!(rules(&[("[::1]", "::1")]).unwrap(), "MAP * ~NOTFOUND, EXCLUDE [::1]");
        assert_eq!(rules(&[("example.org", "192.0.2.1")]), None);
        let both = [("localhost", "127.0.0.1"), ("example.org", "192.0.2.1")];
        assert_eq!(rules(&both).unwrap(), "MAP localhost 127.0.0.1");
    }
}
