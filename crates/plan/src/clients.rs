//! Several clients that share one workload: each client gets an equal part.

use wirelab_model::plan::{Job, Target, Work};
use wirelab_model::spec::{Arrivals, ConnectionPolicy, Extent, Schedule};

use crate::error::StudyError;

/// Rejects workloads that several clients cannot share.
///
/// # Errors
/// If the workload cannot be divided; the message says what to change.
pub(crate) fn with_divisible_clients(job: Job) -> Result<Job, StudyError> {
    let clients = job.load.clients;
    if clients == 1 {
        return Ok(job);
    }
    let undivided = [
        ("site", matches!(job.target, Target::Site(_)), "wirelab sends requests to a remote site from one client only"),
        ("page", matches!(job.work, Work::Page(_)), "a browser loads whole pages"),
        ("mesh", job.sidecar().is_some(), "all clients would share one sidecar"),
        (
            "warm_up = \"until steady\"",
            job.load.until_steady,
            "a client whose response times are steady would wait idle for the others",
        ),
    ];
    if let Some((key, _, why)) = undivided.into_iter().find(|(_, is_set, _)| *is_set) {
        return Err(StudyError::new(format!(
            "`clients` is {clients} beside `{key}`, but {why}; leave one of them out"
        )));
    }
    let part = |key: &str, whole: u64| {
        let clients = u64::from(clients);
        let (below, above) = (whole / clients * clients, whole.div_ceil(clients) * clients);
        let nearest = if below == 0 { format!("{above}") } else { format!("{below} or {above}") };
        match whole % clients {
            0 => Ok(()),
            _ => Err(StudyError::new(format!(
                "`{key}` is {whole}, which {clients} clients cannot share equally; set `{key}` to {nearest}, or change \
                 `clients`"
            ))),
        }
    };
    match job.load.schedule {
        Schedule::Closed { workers, .. } => part("workers", workers.into())?,
        Schedule::Open { arrivals: Arrivals::Poisson, .. } => {}
        Schedule::Open { arrivals: Arrivals::Uniform, .. } => {
            return Err(StudyError::new(format!(
                "`arrivals` is `uniform`, but {clients} clients that begin together would send {clients} requests at the \
                 same moment; set it to `poisson`, whose parts add up to one Poisson process"
            )));
        }
    }
    if let Extent::Requests(requests) = job.load.extent {
        part("requests", requests)?;
    }
    if let Some(Extent::Requests(requests)) = job.load.warm_up {
        part("warm_up", requests)?;
    }
    if let ConnectionPolicy::Persistent { connections, .. } = job.load.connections {
        part("connections", connections.into())?;
    }
    Ok(job)
}

#[cfg(test)]
mod tests {
    use wirelab_model::spec::Pause;

    use super::*;

    fn of(toml: &str) -> Result<Job, StudyError> {
        crate::job(&toml::from_str(&format!("protocol = 'h2'\n{toml}")).unwrap())
    }

    #[test]
    fn clients_get_equal_parts_that_add_up_to_the_workload() {
        let job = of("clients = 4\nworkers = 8\nrequests = 400\nwarm_up = 40").unwrap();
        assert_eq!(job.load.connections, ConnectionPolicy::Persistent { connections: 4, streams: 2 }, "one for each");
        let one = job.load.of_one_client();
        assert_eq!(one.schedule, Schedule::Closed { workers: 2, pause: Pause::None });
        assert_eq!((one.extent, one.warm_up), (Extent::Requests(100), Some(Extent::Requests(10))));
        assert_eq!(one.connections, ConnectionPolicy::Persistent { connections: 1, streams: 2 });
        assert_eq!((job.load.clients, one.clients), (4, 1));
        let open = of("clients = 4\nrate = '100/s'\nduration = '2 s'").unwrap().load.of_one_client();
        assert_eq!(open.schedule, Schedule::Open { rate_per_s: 25.0, arrivals: Arrivals::Poisson });
        assert_eq!(open.extent, Extent::DurationNs(2_000_000_000), "as long as the whole");
        assert_eq!(of("").unwrap().load.of_one_client(), of("clients = 1").unwrap().load);
    }

    #[test]
    fn indivisible_workloads_are_refused_with_the_nearest_divisible_one() {
        for (toml, words) in [
            ("clients = 4", "`workers` is 1, which 4 clients cannot share equally; set `workers` to 4"),
            ("clients = 3\nworkers = 8", "set `workers` to 6 or 9"),
            ("clients = 3\nworkers = 3", "`requests` is 100, which 3 clients"),
            ("clients = 3\nworkers = 3\nrequests = 9\nwarm_up = 5", "set `warm_up` to 3 or 6"),
            ("clients = 2\nworkers = 2\nconnections = 3", "`connections` is 3"),
            ("clients = 2\nrate = '10/s'\narrivals = 'uniform'", "set it to `poisson`"),
            ("clients = 0", "`clients` is 0, but must be from 1 to 500"),
            ("clients = 2\nsite = 'https://example.org'", "beside `site`"),
            ("clients = 2\nworkers = 2\nwarm_up = 'until steady'", "beside `warm_up = \"until steady\"`, but a client"),
        ] {
            let why = of(toml).unwrap_err().to_string();
            assert!(why.contains(words), "{toml}: {why}");
        }
    }
}
