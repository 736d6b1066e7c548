//! The hosts of a job's endpoints.

use wirelab_lab::internet::{no_labels, own_servers};
use wirelab_lab::loopback::no_timeline;
use wirelab_lab::{LabError, Role, fixed_network};
use wirelab_model::network::{Network, Servers};
use wirelab_model::placement::Distance;
use wirelab_model::plan::{Job, Reach};

use crate::INFO;
use crate::inventory::{Host, HostRole, Inventory};

/// Whether the lab supports a job, regardless of its hosts.
///
/// # Errors
/// If not; the message names the remedy.
pub(crate) fn supports(job: &Job) -> Result<(), LabError> {
    distance(job).map(drop)
}

fn distance(job: &Job) -> Result<Distance, LabError> {
    let unsupported = |what: &str| LabError::unsupported(format!("the lab `{}` {what}", INFO.name));
    no_timeline(INFO.name, job)?;
    no_labels(INFO.name, job)?;
    let distance = fixed_network::distance(INFO.name, job)?;
    if job.topology.network != Network::Direct {
        return Err(unsupported("has no nodes and pods").remedy("set `network = \"direct\"`, or leave it out"));
    }
    let own = own_servers(INFO.name, job)?;
    if own.places != Servers::ONE || own.reach != Reach::Server {
        return Err(unsupported("has one server, which clients reach at its address")
            .remedy("use the lab `netns` or `kubernetes`"));
    }
    if job.page().is_some() {
        return Err(unsupported("starts no browsers").remedy("use the lab `loopback` or `netns`"));
    }
    Ok(distance)
}

/// The host of the server, and the hosts of the clients in order, as numbers of the inventory.
///
/// # Errors
/// If no hosts have the distance that the job's placement asks for.
pub(crate) fn place(inventory: &Inventory, job: &Job) -> Result<Placed, LabError> {
    let distance = distance(job)?;
    let number = |host: &Host| inventory.host.iter().position(|one| one == host).expect("it is one of the hosts");
    let first = inventory.with(HostRole::Client).next().expect("an inventory has a client");
    let server = match distance {
        Distance::SameNode => Some(first),
        _ => inventory.with(HostRole::Server).find(|server| distance.holds(&first.spot(), &server.spot())),
    };
    let server = server.ok_or_else(|| {
        LabError::unsupported(format!(
            "no server's host is at the placement `{}` of the client's host {}",
            job.topology.placement,
            first.name()
        ))
        .remedy("give the hosts a `zone` in the file of --hosts, or set another `placement`")
    })?;
    let clients: Vec<_> = match distance {
        Distance::SameNode => vec![number(first)],
        _ => {
            let is_there = |client: &&Host| distance.holds(&client.spot(), &server.spot());
            inventory.with(HostRole::Client).filter(is_there).map(number).collect()
        }
    };
    Ok(Placed { server: number(server), clients })
}

/// Where the endpoints of a job run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Placed {
    pub(crate) server: usize,
    /// Hosts of the clients, which take them in turn.
    pub(crate) clients: Vec<usize>,
}

impl Placed {
    /// The host of an endpoint.
    pub(crate) fn host(&self, role: Role, number: u32) -> usize {
        match role {
            Role::Server => self.server,
            _ => self.clients[number as usize % self.clients.len()],
        }
    }
}

#[cfg(test)]
mod tests {
    use wirelab_model::link::Link;
    use wirelab_model::plan::{OwnServers, Target, Topology};
    use wirelab_model::protocol::Protocol;

    use super::*;

    fn job(placement: &str) -> Job {
        Job { topology: Topology::at(placement), ..Job::plain(Protocol::H2) }
    }

    fn inventory() -> Inventory {
        let mut inventory = Inventory::read("client=a,client=b,server=b,server=c").unwrap();
        for (host, zone) in inventory.host.iter_mut().zip(["z1", "z1", "z2"]) {
            host.zone = Some(zone.to_owned());
        }
        inventory
    }

    #[test]
    fn each_placement_has_its_hosts() {
        for (placement, server, clients) in [
            ("same-node", 0, vec![0]),
            ("other-node", 1, vec![0]),
            ("same-zone", 1, vec![0]),
            ("other-zone", 2, vec![0, 1]),
        ] {
            assert_eq!(place(&inventory(), &job(placement)), Ok(Placed { server, clients }), "{placement}");
        }
        let placed = place(&inventory(), &job("multi-az")).unwrap();
        assert_eq!((placed.host(Role::Client, 3), placed.host(Role::Server, 0)), (1, 2));
    }

    #[test]
    fn what_hosts_cannot_be_is_refused_with_the_remedy() {
        let mut without_zones = inventory();
        without_zones.host.iter_mut().for_each(|host| host.zone = None);
        let why = place(&without_zones, &job("same-zone")).unwrap_err().to_string();
        assert!(why.contains("give the hosts a `zone`"), "{why}");
        let two = OwnServers { places: Servers { near: 0, far: 2 }, ..OwnServers::one("builtin") };
        let offloading = Topology { offloads: Some(true), ..Topology::at("other-node") };
        let linked = |link| Job { topology: Topology { link: Some(link), ..Topology::at("lan") }, ..job("lan") };
        assert!(place(&inventory(), &linked(Link::wire())).is_ok(), "a plain wire demands nothing");
        for (job, remedy) in [
            (job("local"), "other-node"),
            (job("othr-node"), "did you mean `other-node`"),
            (Job { target: Target::Servers(two), ..job("other-node") }, "use the lab `netns`"),
            (Job { topology: offloading, ..job("other-node") }, "leave `offloads` out"),
            (linked(Link { mtu: 9000, ..Link::wire() }), "leave out the keys of the link"),
        ] {
            let why = place(&inventory(), &job).unwrap_err().to_string();
            assert!(why.contains(remedy), "{remedy}: {why}");
        }
    }
}
