//! Request limits for hosts that the user may not own: those outside of this machine and of private networks. The plan
//! is checked before the first request.

use std::collections::BTreeMap;
use std::time::Duration;

use wirelab_model::plan::{Cell, Job, Plan};
use wirelab_model::protocol::Protocol;
use wirelab_model::site::Site;
use wirelab_model::spec::{Extent, Pause, Schedule};

/// Maximum requests per protocol to a foreign host, including those before a measurement.
pub const REQUESTS: u64 = 30;

/// Minimum time between two requests to foreign hosts, from the end of one to the start of the next.
pub const INTERVAL: Duration = Duration::from_millis(500);

/// Maximum page loads from a foreign host, over all protocols and browsers. The page determines the requests per
/// load.
pub const LOADS: u32 = 30;

/// Minimum time between two page loads from foreign hosts, from the end of one to the start of the next: the pace of
/// a visitor.
pub const LOAD_INTERVAL: Duration = Duration::from_secs(5);

/// Why a plan exceeds the limits for foreign hosts, or `None` if it keeps them or has no foreign host.
///
/// Each trial counts as one request more than it records, because clients may send a check request before they
/// measure.
#[must_use]
pub fn excess(plan: &Plan) -> Option<String> {
    for (cell, _) in foreign(plan) {
        if let Some(why) = too_fast(&cell.job).or_else(|| unlimited(&cell.job)) {
            return Some(format!("the cell `{}` {why}", cell.label()));
        }
    }
    let ((host, protocol), requests) = requests(plan).into_iter().max_by_key(|(_, requests)| *requests)?;
    (requests > REQUESTS).then(|| {
        let title = protocol.title();
        format!(
            "{host} would be sent {requests} requests of {title} (those of each trial and one before, in every block, \
             A/A twins included), but a host that is not yours gets at most {REQUESTS} per protocol; lower `requests` \
             or `blocks.max`, or use fewer clients"
        )
    })
}

/// Maximum requests that a plan sends, by foreign host and protocol. A trial that lasts a time has no
/// maximum, and does not count.
#[must_use]
pub fn requests(plan: &Plan) -> BTreeMap<(&str, Protocol), u64> {
    let mut sent: BTreeMap<_, u64> = BTreeMap::new();
    for (cell, site) in foreign(plan) {
        let Extent::Requests(requests) = cell.job.load.extent else { continue };
        let each = requests.saturating_add(1).saturating_mul(plan.max_blocks.into());
        let of_host = sent.entry((site.host.as_str(), cell.job.protocol)).or_default();
        *of_host = of_host.saturating_add(each);
    }
    sent
}

/// The cells with a foreign host.
fn foreign(plan: &Plan) -> impl Iterator<Item = (&Cell, &Site)> {
    let sites = plan.cells.iter().filter_map(|cell| Some((cell, cell.job.site()?)));
    sites.filter(|(_, site)| !site.is_near())
}

/// Removes the A/A twins from a plan with foreign hosts: they would repeat the baseline's requests. Twins come after
/// all other cells, so the other cells keep their numbers.
pub fn remove_twins(plan: &mut Plan) {
    if foreign(plan).next().is_none() {
        return;
    }
    plan.cells.retain(|cell| cell.twin_of.is_none());
    plan.comparisons.retain(|comparison| !comparison.aa);
}

/// Why a trial's requests are too frequent, or `None`.
fn too_fast(job: &Job) -> Option<String> {
    let least = Duration::from_nanos(match job.load.schedule {
        Schedule::Open { .. } => {
            return Some("has an open loop, which does not wait for responses; use `pause`".to_owned());
        }
        Schedule::Closed { workers, .. } if workers > 1 => {
            return Some(format!(
                "has {workers} requests in flight at the same time; a host that is not yours gets one"
            ));
        }
        Schedule::Closed { pause: Pause::None, .. } if job.load.extent == Extent::Requests(1) => return warm_up(job),
        Schedule::Closed { pause: Pause::None, .. } => 0,
        Schedule::Closed { pause: Pause::Fixed { ns }, .. } => ns,
        Schedule::Closed { pause: Pause::Uniform { min_ns, .. }, .. } => min_ns,
    });
    if least < INTERVAL {
        return Some(format!("pauses for {least:?} between requests; a host that is not yours gets {INTERVAL:?}"));
    }
    warm_up(job)
}

/// Why a trial's number of requests is unknown, or `None`.
fn unlimited(job: &Job) -> Option<String> {
    let why = "lasts a time and not a number of requests; set `requests`";
    (!matches!(job.load.extent, Extent::Requests(_))).then(|| why.to_owned())
}

fn warm_up(job: &Job) -> Option<String> {
    job.load.warm_up.map(|_| "has a warm-up, which a host that is not yours is spared; set `warm_up = 0`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(workload: &str, blocks: u32) -> Option<String> {
        let text = format!(
            "name = \"mine\"\ntitle = \"t\"\nquestion = \"q\"\n[workload]\n{workload}\n[factors]\nprotocol = [\"h1\", \"h2\"]\n\
             [compare]\nfactor = \"protocol\"\nbaseline = \"h1\"\n[blocks]\nmin = 1\nmax = {blocks}\n"
        );
        let study = crate::parse(&text, "mine.toml").unwrap();
        excess(&crate::plan(&study).unwrap().0)
    }

    const SITE: &str = "site = \"https://example.org/\"";

    #[test]
    fn servers_that_wirelab_starts_have_no_limit() {
        assert_eq!(of("requests = 100000\nworkers = 10", 10), None);
    }

    #[test]
    fn hosts_of_this_machine_and_of_private_networks_have_no_limit() {
        for site in
            ["https://localhost:8443/", "https://10.0.0.1/", "https://example.org/\"\nsite_address = \"10.0.0.1"]
        {
            assert_eq!(of(&format!("site = \"{site}\"\nrequests = 100000\nworkers = 10"), 10), None, "{site}");
        }
    }

    #[test]
    fn the_limit_for_foreign_hosts_counts_every_request() {
        // The baseline and its A/A twin, 5 blocks, 2 requests and one before them: 30.
        assert_eq!(of(&format!("{SITE}\nrequests = 2\npause = \"500 ms\""), 5), None);
        let why = of(&format!("{SITE}\nrequests = 2\npause = \"500 ms\""), 6).unwrap();
        assert!(why.starts_with("example.org would be sent 36 requests of HTTP/1.1"), "{why}");
        assert_eq!(of(&format!("{SITE}\nrequests = 1"), 7), None);
    }

    #[test]
    fn foreign_hosts_get_one_request_at_a_time_with_pauses() {
        for (more, words) in [
            ("requests = 2", "pauses for 0ns"),
            ("requests = 2\npause = \"499 ms\"", "pauses for 499ms"),
            ("requests = 2\npause = \"0 ms\"\npause_max = \"5 s\"", "pauses for 0ns"),
            ("requests = 2\nworkers = 2", "2 requests in flight"),
            ("requests = 2\nrate = \"1/min\"", "open loop"),
            ("duration = \"1 s\"\npause = \"500 ms\"", "set `requests`"),
            ("requests = 1\nwarm_up = 1", "warm-up"),
            ("requests = 2\npause = \"1 s\"\nwarm_up = 1", "warm-up"),
        ] {
            let why = of(&format!("{SITE}\n{more}"), 1).unwrap();
            assert!(why.contains(words), "{more}: {why}");
        }
    }
}
