//! Checks what a browser says of the loads of a page, before any of them counts.

use wirelab_model::metric::Value;
use wirelab_model::outcome::{Blame, Outcome};
use wirelab_model::page::PageLoad;
use wirelab_model::plan::{Cell, Job};
use wirelab_model::spec::Extent;
use wirelab_model::units::Span;

use crate::verify::Tally;

/// Connections that browsers open to one host over HTTP/1.1.
const PARALLEL: f64 = 6.0;

/// What a load's clock may differ by from that of the link: its moments are read in other processes than the packets' own.
const CLOCK_SLACK_NS: f64 = 1e6;

/// Every load is a sample, and none of them is impossible.
///
/// # Errors
/// The outcome of the trial: that of the first load that is no sample, with its blame; or the client's fault.
pub(crate) fn loads(cell: &Cell, loads: &[PageLoad]) -> Result<Tally, Outcome> {
    let job = &cell.job;
    let wanted = match job.extent {
        Extent::Requests(wanted) => wanted,
        Extent::DurationNs(_) => loads.len() as u64,
    };
    for (index, load) in loads.iter().enumerate() {
        let which = format!("load {} of {wanted}", index + 1);
        match &load.outcome {
            Outcome::Ok => {}
            Outcome::Failed { blame, reason } => {
                return Err(Outcome::failed(*blame, format!("{which} is no sample: {reason}")));
            }
            Outcome::Unsupported { reason } => return Err(Outcome::Unsupported { reason: reason.clone() }),
        }
        if let Some(what) = impossible(job, load) {
            return Err(Outcome::failed(Blame::Client, format!("{which} is impossible: {what}")));
        }
    }
    let ok = loads.len() as u64;
    let bytes = match job.page {
        // Nobody knows what a load of it has to be.
        Some(page) if !page.is_made() => loads.iter().map(bodies).sum(),
        _ => ok.saturating_mul(job.response_size.bytes()),
    };
    Ok(Tally { ok, bytes, ..Tally::default() })
}

/// The bytes of its bodies, as they came.
fn bodies(load: &PageLoad) -> u64 {
    let value = |name: &str| load.values.get(name).and_then(Value::number).unwrap_or(0.0);
    (value("received") - value("header_bytes")).max(0.0) as u64
}

/// What of a load cannot be.
fn impossible(job: &Job, load: &PageLoad) -> Option<String> {
    let value = |name: &str| load.values.get(name).and_then(Value::number);
    let bytes = job.response_size.bytes();
    if let Some(received) = value("received").filter(|received| *received < bytes as f64) {
        return Some(format!("{received} bytes were received, and the page's bodies alone have {bytes}"));
    }
    let most = if job.protocol.multiplexes() { 1.0 } else { PARALLEL };
    let connections = value("connections");
    if let Some(connections) = connections.filter(|connections| job.hosts.is_empty() && *connections > most) {
        return Some(format!(
            "it took {connections} connections, and browsers open at most {most} for {}",
            job.protocol
        ));
    }
    if let Some(what) = connections.and_then(|connections| shared(job, load, connections)) {
        return Some(what);
    }
    let link = job.link?;
    // Every byte of a body crosses the link, whatever is around it.
    let least = link.rate.map_or(0.0, |rate| bytes as f64 * 8e9 / rate.0 as f64);
    if let Some(net) = value("net").filter(|net| net + CLOCK_SLACK_NS < least) {
        return Some(format!(
            "its net time is {:.1} ms, and the link needs {:.1} ms for its bytes",
            net / 1e6,
            least / 1e6
        ));
    }
    // TCP takes one round trip, TLS 1.3 one, QUIC with TLS one, the request one. Packets that overtake others save time.
    let trips = if job.protocol.uses_quic() { 2.0 } else { 3.0 };
    let round_trip = link.round_trip.nanos().saturating_sub(2 * link.jitter.nanos()) as f64;
    let least = if link.reorder.0 > 0.0 { 0.0 } else { trips * round_trip + job.delay.nanos() as f64 };
    if let Some(first) = value("first_byte").filter(|first| first + CLOCK_SLACK_NS < least) {
        let [first, least] = [first, least].map(|ns| ns / 1e6);
        let and_delay = if job.delay > Span(0) { " and the server's delay" } else { "" };
        return Some(format!(
            "its first byte came after {first:.1} ms, and {trips} round trips{and_delay} take {least:.1} ms"
        ));
    }
    None
}

/// What of the connections to the hosts of a page cannot be. Each host has an address and a certificate of its own, so that none of them
/// has another one's requests.
fn shared(job: &Job, load: &PageLoad, connections: f64) -> Option<String> {
    let page = job.page.filter(|_| !job.hosts.is_empty())?;
    // What a page of somebody's own asks for without credentials (CORS) has connections of its own.
    let each = if page.is_made() { 1.0 } else { 2.0 };
    let most = if job.protocol.multiplexes() { each } else { each * PARALLEL };
    let mut sum = 0;
    for host in &job.hosts {
        // Where a browser does not number them, as Chromium what it took early from its cache, nothing can be said.
        let own = load.connections_to(host)?;
        if own as f64 > most {
            return Some(format!(
                "it took {own} connections to {host}, and browsers open at most {most} for {}",
                job.protocol
            ));
        }
        if own == 0 && page.is_made() {
            return Some(format!("nothing was asked of {host}, which has files of the page"));
        }
        sum += own;
    }
    let is_wrong = page.is_made() && sum as f64 != connections;
    is_wrong.then(|| format!("its hosts had {sum} connections, and all together only {connections}: some were shared"))
}

#[cfg(test)]
mod tests {
    use wirelab_model::link::Link;
    use wirelab_model::page::{PageName, PageResource};
    use wirelab_model::plan::Job;
    use wirelab_model::protocol::Protocol;
    use wirelab_model::units::{BitRate, Size};

    use super::*;
    use crate::fixture::cell;

    fn of_page(protocol: Protocol) -> Cell {
        let rate = Some(BitRate(8_000_000));
        let link = Some(Link { round_trip: Span::from_millis(50), rate, ..Link::wire() });
        let (page, response_size) = (Some(PageName::Small10), Size(100_000));
        Cell { job: Job { page, response_size, link, ..Job::plain(protocol) }, ..cell() }
    }

    fn load(changed: &[(&str, f64)]) -> PageLoad {
        let values = [("received", 105_000.0), ("connections", 1.0), ("net", 120e6), ("first_byte", 155e6)];
        let values = values.iter().chain(changed).map(|(name, value)| ((*name).to_owned(), Value::Measured(*value)));
        PageLoad { outcome: Outcome::Ok, values: values.collect(), warnings: Vec::new(), resources: Vec::new() }
    }

    #[test]
    fn loads_are_counted_as_requests_of_the_whole_page() {
        let mut cell = of_page(Protocol::H2);
        cell.job.extent = Extent::Requests(2);
        let tally = loads(&cell, &[load(&[]), load(&[])]).unwrap();
        assert_eq!((tally.ok, tally.bytes), (2, 200_000));
    }

    #[test]
    fn a_load_that_is_no_sample_fails_the_trial_with_its_blame() {
        let reason = "53 of 53 resources came over h2".to_owned();
        let failed = PageLoad { outcome: Outcome::failed(Blame::Server, reason), ..load(&[]) };
        let outcome = loads(&of_page(Protocol::H3), &[load(&[]), failed]).unwrap_err();
        let expected = "load 2 of 1 is no sample: 53 of 53 resources came over h2";
        assert_eq!(outcome, Outcome::failed(Blame::Server, expected));
    }

    #[test]
    fn connections_are_counted_by_host() {
        let resource = |host: &str, connection: u64| PageResource {
            url: format!("https://{host}/x"),
            connection: Some(connection),
            ..PageResource::default()
        };
        let judged = |protocol, connections: &[(&str, u64)]| {
            let mut cell = of_page(protocol);
            cell.job = cell.job.of_hosts(vec!["a.test".to_owned(), "b.test".to_owned()]);
            let numbers: std::collections::HashSet<u64> = connections.iter().map(|(_, number)| *number).collect();
            let resources = connections.iter().map(|(host, number)| resource(host, *number)).collect();
            let load = PageLoad { resources, ..load(&[("connections", numbers.len() as f64)]) };
            match loads(&cell, &[load]) {
                Err(Outcome::Failed { blame: Blame::Client, reason }) => reason,
                Err(other) => panic!("{other:?}"),
                Ok(_) => String::new(),
            }
        };
        let seven: Vec<_> = (0..7).map(|number| ("b.test", number)).chain([("a.test", 8)]).collect();
        for (protocol, connections, words) in [
            (Protocol::H2, &[("a.test", 1), ("b.test", 2), ("a.test", 1)][..], ""),
            (Protocol::H1, &[("a.test", 1), ("a.test", 2), ("b.test", 3)], ""),
            (Protocol::H3, &[("a.test", 1), ("a.test", 2), ("b.test", 3)], "2 connections to a.test"),
            (Protocol::H3, &[("a.test", 1), ("b.test", 2), ("b.test", 3)], "2 connections to b.test"),
            (Protocol::H2, &[("a.test", 1), ("b.test", 2), ("b.test", 3)], "2 connections to b.test"),
            (Protocol::H1, &seven, "7 connections to b.test"),
            (Protocol::H2, &[("a.test", 1)], "nothing was asked of b.test"),
            (Protocol::H2, &[("a.test", 1), ("b.test", 1)], "had 2 connections, and all together only 1"),
        ] {
            let reason = judged(protocol, connections);
            assert!(reason.contains(words) && reason.is_empty() == words.is_empty(), "{words}: {reason}");
        }
    }

    #[test]
    fn what_physics_forbids_fails_the_trial() {
        let refused = |protocol, changed: &[(&str, f64)]| match loads(&of_page(protocol), &[load(changed)]) {
            Err(Outcome::Failed { blame: Blame::Client, reason }) => Some(reason),
            Err(other) => panic!("{other:?}"),
            Ok(_) => None,
        };
        for (protocol, changed, words) in [
            (Protocol::H2, ("received", 99_999.0), "bodies alone have 100000"),
            (Protocol::H2, ("connections", 2.0), "at most 1 for h2"),
            (Protocol::H1, ("connections", 7.0), "at most 6 for h1"),
            (Protocol::H3, ("net", 98e6), "needs 100.0 ms"),
            (Protocol::H2, ("first_byte", 140e6), "3 round trips take 150.0 ms"),
            (Protocol::H3, ("first_byte", 90e6), "2 round trips take 100.0 ms"),
        ] {
            let reason = refused(protocol, &[changed]).unwrap_or_else(|| panic!("{words}: it is accepted"));
            assert!(reason.contains(words), "{reason}");
        }
        let mut thinking = of_page(Protocol::H2);
        thinking.job.delay = Span::from_millis(100);
        let outcome = loads(&thinking, &[load(&[("first_byte", 240e6)])]).unwrap_err();
        assert!(format!("{outcome:?}").contains("3 round trips and the server's delay take 250.0 ms"), "{outcome:?}");
        assert_eq!(refused(Protocol::H1, &[("connections", 6.0)]), None);
        assert_eq!(refused(Protocol::H3, &[("first_byte", 105e6)]), None);
    }
}
