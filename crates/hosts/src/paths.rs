//! The paths between the hosts of clients and servers.

use std::convert::Infallible;

use wirelab_agent::measure_path;
use wirelab_lab::{LabError, many};
use wirelab_model::missing::Missing;
use wirelab_model::path::{Measured, PathReading, PathRecord};
use wirelab_model::plan::Job;
use wirelab_model::units::BitRate;

use crate::connected::ConnectedHosts;
use crate::inventory::Inventory;
use crate::place::{Placed, place};

/// A pair of hosts, as numbers of the inventory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Pair {
    client: usize,
    server: usize,
}

/// Measures the path of each pair of hosts. Load on one path would disturb the others, so paths are then measured one
/// after the other.
pub(crate) fn measure(hosts: &mut ConnectedHosts<'_>, jobs: &[&Job], load: Option<BitRate>) -> Vec<PathRecord> {
    let pairs = pairs(hosts.inventory(), jobs);
    let healed: Vec<Result<(), LabError>> =
        pairs.iter().map(|(pair, _)| hosts.heal(&Placed { server: pair.server, clients: vec![pair.client] })).collect();
    let hosts = &*hosts;
    let measure = |((pair, placement), healed): ((Pair, String), Result<(), LabError>)| {
        let reading = healed.and_then(|()| reading(hosts, pair, load));
        let reading = reading.unwrap_or_else(|error| Measured::Missing(Missing::Lab { reason: error.to_string() }));
        let name = |number: usize| hosts.inventory().host[number].name().to_owned();
        PathRecord { placement, client: name(pair.client), server: name(pair.server), reading }
    };
    let all: Vec<_> = pairs.into_iter().zip(healed).collect();
    if load.is_some() {
        return all.into_iter().map(measure).collect();
    }
    many::each(all, |one| Ok::<_, Infallible>(measure(one))).unwrap_or_else(|never| match never {})
}

fn reading(hosts: &ConnectedHosts<'_>, pair: Pair, load: Option<BitRate>) -> Result<Measured<PathReading>, LabError> {
    let (client, server) = (hosts.machine(pair.client)?, hosts.machine(pair.server)?);
    Ok(measure_path(client.seat("path").as_ref(), server.seat("path").as_ref(), server.address, load))
}

/// The pairs of hosts of these jobs, with the names of their placements.
fn pairs(inventory: &Inventory, jobs: &[&Job]) -> Vec<(Pair, String)> {
    let mut pairs: Vec<(Pair, String)> = Vec::new();
    for job in jobs {
        // The lab refuses a job without a place when it opens.
        let Ok(Placed { server, clients }) = place(inventory, job) else { continue };
        let name = &job.topology.placement;
        for client in clients.into_iter().take(job.load.clients as usize) {
            let pair = Pair { client, server };
            match pairs.iter_mut().find(|(known, _)| *known == pair) {
                Some((_, names)) if names.split(", ").any(|known| known == name) => {}
                Some((_, names)) => *names = format!("{names}, {name}"),
                None => pairs.push((pair, name.clone())),
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use wirelab_model::plan::Topology;
    use wirelab_model::protocol::Protocol;

    use super::*;

    #[test]
    fn each_pair_of_hosts_that_a_job_uses_is_measured_once() {
        let inventory = Inventory::read("client=a,client=b,server=c").unwrap();
        let job = |placement: &str, clients| {
            let mut job = Job { topology: Topology::at(placement), ..Job::plain(Protocol::H2) };
            job.load.clients = clients;
            job
        };
        let jobs =
            [job("other-node", 1), job("other-node", 2), job("lan", 1), job("same-node", 1), job("same-zone", 1)];
        let pairs = pairs(&inventory, &jobs.iter().collect::<Vec<_>>());
        let named: Vec<_> = pairs.iter().map(|(pair, name)| (pair.client, pair.server, name.as_str())).collect();
        assert_eq!(named, [(0, 2, "other-node, lan"), (1, 2, "other-node"), (0, 0, "same-node")]);
    }
}
