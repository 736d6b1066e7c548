//! Names of private hosts. The limits for foreign hosts do not apply to a host whose name has private addresses only.

use std::collections::HashMap;
use std::net::{IpAddr, ToSocketAddrs};

use wirelab_model::plan::{Plan, Target};
use wirelab_model::site::{Site, is_near};

/// Fixes the address of each site whose name has addresses of this machine or of private networks only. All trials then
/// use this address, so a later change of the name cannot send unlimited requests to a foreign host.
pub(super) fn fix_addresses(plan: &mut Plan, look_up: impl Fn(&str, u16) -> Vec<IpAddr>) {
    let mut found = HashMap::new();
    for cell in &mut plan.cells {
        let Target::Site(site) = &mut cell.job.target else { continue };
        if is_known(site) || site.unix_socket.is_some() || site.is_looked_up_by_proxy() {
            continue;
        }
        let private = found.entry((site.host.clone(), site.port)).or_insert_with(|| {
            let addresses = look_up(&site.host, site.port);
            // IPv4 first, as in the lab.
            addresses.iter().all(|address| is_near(*address)).then(|| addresses.into_iter().min()).flatten()
        });
        site.address = *private;
    }
}

/// Fixes the address of each site whose address, and not whose name, a proxy gets from the client.
pub(super) fn fix_behind_proxies(plan: &mut Plan, look_up: impl Fn(&str, u16) -> Vec<IpAddr>) {
    for cell in &mut plan.cells {
        let Target::Site(site) = &mut cell.job.target else { continue };
        if site.proxy.is_some() && !is_known(site) && !site.is_looked_up_by_proxy() {
            site.address = look_up(&site.host, site.port).into_iter().min();
        }
    }
}

/// Whether the address of a site needs no look-up.
fn is_known(site: &Site) -> bool {
    site.address.is_some() || site.host.parse::<IpAddr>().is_ok()
}

/// The addresses of a name; none if it has none or cannot be looked up. The lab then refuses the site with the reason.
pub(super) fn addresses(host: &str, port: u16) -> Vec<IpAddr> {
    (host, port).to_socket_addrs().map(|found| found.map(|socket| socket.ip()).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use wirelab_plan::polite;

    use super::*;
    use crate::fixture::{cell, plan};

    fn site(host: &str, address: Option<IpAddr>) -> Site {
        Site {
            url: format!("https://{host}/"),
            host: host.to_owned(),
            port: 443,
            path: "/".to_owned(),
            address,
            trust_anchor: None,
            unix_socket: None,
            proxy: None,
        }
    }

    #[test]
    fn a_name_with_private_addresses_only_has_no_limit_and_one_address() {
        let known = |host: &str, _| -> Vec<IpAddr> {
            let addresses: &[&str] = match host {
                "staging.test" => &["fd00::1", "10.0.0.7"],
                "mixed.test" => &["10.0.0.7", "203.0.113.7"],
                "shop.test" => &["203.0.113.7"],
                _ => &[],
            };
            addresses.iter().map(|address| address.parse().unwrap()).collect()
        };
        for (host, fixed, address, is_limited) in [
            ("staging.test", None, Some("10.0.0.7"), false),
            ("staging.test", Some("10.0.0.9"), Some("10.0.0.9"), false),
            ("mixed.test", None, None, true),
            ("shop.test", None, None, true),
            ("unknown.test", None, None, true),
            ("203.0.113.9", None, None, true),
        ] {
            let mut cell = cell();
            let address_of = |text: Option<&str>| text.map(|text| text.parse::<IpAddr>().unwrap());
            cell.job.target = Target::Site(site(host, address_of(fixed)));
            let mut plan = Plan { max_blocks: 100, ..plan(vec![cell]) };
            fix_addresses(&mut plan, known);
            assert_eq!(plan.cells[0].job.site().unwrap().address, address_of(address), "{host}");
            assert_eq!(polite::excess(&plan).is_some(), is_limited, "{host}");
        }
    }

    #[test]
    fn only_a_proxy_that_looks_up_no_names_gets_an_address() {
        for (proxy, address) in [("socks5", Some("10.0.0.7")), ("socks5h", None), ("http", None)] {
            let mut cell = cell();
            let proxy = Some(format!("{proxy}://localhost:1080").parse().unwrap());
            cell.job.target = Target::Site(Site { proxy, ..site("shop.test", None) });
            let mut plan = plan(vec![cell]);
            let look_up = |_: &str, _| vec!["fd00::1".parse().unwrap(), "10.0.0.7".parse().unwrap()];
            fix_behind_proxies(&mut plan, look_up);
            fix_addresses(&mut plan, look_up);
            let expected = address.map(|address| address.parse::<IpAddr>().unwrap());
            assert_eq!(plan.cells[0].job.site().unwrap().address, expected, "{address:?}");
        }
    }
}
