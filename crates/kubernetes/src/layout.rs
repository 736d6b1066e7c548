//! The requirements of all jobs of a run on a cluster.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use wirelab_lab::LabError;
use wirelab_model::network::Address;
use wirelab_model::nodes::Labels;
use wirelab_model::plan::{Course, Job};
use wirelab_model::timeline::Lifetimes;

use crate::distance::Place;
use crate::place::{clients, servers};
use wirelab_lab::endpoints::is_own;

/// The requirements of a run on a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Layout {
    /// The pods of servers, by name.
    pub(crate) servers: BTreeMap<String, Place>,
    /// The labels that the clients' nodes must have.
    pub(crate) client_nodes: Option<Labels>,
    /// The addresses that clients of any job connect to.
    pub(crate) addresses: HashSet<Address>,
    /// Number of client pods outside the mesh. The first always exists, because all other pods are placed relative to
    /// it.
    pub(crate) clients: u32,
    /// The pods in the mesh, by name: servers, and counterparts of client pods outside.
    pub(crate) meshed: BTreeSet<String>,
    /// The maximum number of clients in one pod.
    pub(crate) clients_in_a_pod: usize,
    /// Whether any endpoint other than the built-in one runs.
    pub(crate) has_others: bool,
}

impl Layout {
    /// The requirements of all these jobs together.
    ///
    /// # Errors
    /// As [`servers`].
    pub(crate) fn of(jobs: &[&Job]) -> Result<Self, LabError> {
        let client_nodes = jobs.first().and_then(|job| job.topology.client_nodes.clone());
        if jobs.iter().any(|job| job.topology.client_nodes != client_nodes) {
            return Err(LabError::unsupported(
                "`client_nodes` is not the same in all cells, but the client's pod lives as long as the run; set it in `[workload]`, and \
                        run the study once for each",
            ));
        }
        let mut layout = Self { client_nodes, ..Self::default() };
        for job in jobs {
            let servers = servers(job)?;
            if job.is_in_linkerd() {
                layout.meshed.extend(clients(job));
                layout.meshed.extend(servers.iter().map(|(name, _)| name.clone()));
            }
            layout.servers.extend(servers);
            layout.addresses.extend(job.servers().map(|own| own.reach.address()));
            layout.clients = layout.clients.max(job.load.clients);
            let in_a_pod = match job.course {
                Course::Steady => 1,
                Course::Timeline(_) => Lifetimes::of(job).clients.len(),
            };
            layout.clients_in_a_pod = layout.clients_in_a_pod.max(in_a_pod);
            layout.has_others |= players(job).any(|name| !is_own(name));
        }
        Ok(layout)
    }
}

/// The endpoints of a job.
fn players(job: &Job) -> impl Iterator<Item = &String> {
    [job.server(), Some(&job.client), job.sidecar(), job.control_plane()].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use wirelab_model::network::Servers;
    use wirelab_model::placement::Distance;
    use wirelab_model::plan::{Load, OwnServers, Reach, Target};

    use super::*;
    use crate::names;
    use crate::place::client;
    use crate::place::tests::{NEAR, SPREAD, job, labels};

    /// The job in this mesh.
    fn in_mesh(name: &str, job: &Job) -> Job {
        let servers = OwnServers { reach: Reach::Mesh(name.to_owned()), ..job.servers().unwrap().clone() };
        Job { target: Target::Servers(servers), ..job.clone() }
    }

    #[test]
    fn pods_are_shared_by_jobs() {
        let jobs = [
            job("same-node", NEAR, Reach::Server),
            job("multi-az", SPREAD, Reach::Service),
            job("other-zone", SPREAD, Reach::Headless { resolves_again: false }),
            job("same-zone", Servers::ONE, Reach::Service),
        ];
        let layout = Layout::of(&jobs.iter().collect::<Vec<_>>()).unwrap();
        let pods: Vec<_> = layout.servers.iter().map(|(name, place)| (name.as_str(), place.distance)).collect();
        let expected = [
            ("near-0", Distance::SameNode),
            ("other-0", Distance::OtherZone),
            ("other-1", Distance::OtherZone),
            ("zone-0", Distance::SameZone),
        ];
        assert_eq!(pods, expected);
        assert_eq!(layout.addresses, HashSet::from([Address::Server, Address::Service, Address::Headless]));
        assert_eq!((layout.clients, layout.clients_in_a_pod, layout.has_others), (1, 1, false));
        let with_sidecars = in_mesh("proxy", &jobs[1]);
        assert!(Layout::of(&[&jobs[0], &with_sidecars]).unwrap().has_others);
        let shared = Job { load: Load { clients: 3, ..Load::plain() }, ..jobs[0].clone() };
        assert_eq!(clients(&shared), ["client", "client-1", "client-2"]);
        assert_eq!(client(&shared, 2), "client-2");
        let layout = Layout::of(&[&jobs[0], &shared]).unwrap();
        assert_eq!((layout.clients, layout.clients_in_a_pod), (3, 1));
    }

    #[test]
    fn cells_in_the_mesh_have_pods_of_their_own_beside_those_outside() {
        let plain = Job { load: Load { clients: 2, ..Load::plain() }, ..job("other-zone", SPREAD, Reach::Service) };
        let meshed = in_mesh("linkerd", &plain);
        let layout = Layout::of(&[&meshed, &plain]).unwrap();
        let names = ["meshed-client", "meshed-client-1", "meshed-near-0", "meshed-other-0", "meshed-other-1"];
        assert_eq!(layout.meshed, names.map(str::to_owned).into());
        assert_eq!((layout.clients, layout.servers.len(), layout.has_others), (2, 6, false));
        assert_eq!(layout.servers["meshed-other-1"], layout.servers["other-1"], "at the same places");
        assert_eq!(
            (client(&meshed, 1), names::unmeshed("meshed-client-1")),
            ("meshed-client-1".to_owned(), Some("client-1"))
        );
        assert!(Layout::of(&[&plain]).unwrap().meshed.is_empty());
    }

    #[test]
    fn all_clients_of_a_run_are_on_nodes_with_the_same_labels() {
        let plain = job("other-zone", Servers::ONE, Reach::Server);
        let mut elsewhere = plain.clone();
        elsewhere.topology.client_nodes = labels("disk=ssd");
        let layout = Layout::of(&[&elsewhere, &elsewhere]).unwrap();
        assert_eq!(layout.client_nodes, labels("disk=ssd"));
        assert!(Layout::of(&[&plain, &elsewhere]).unwrap_err().to_string().contains("set it in `[workload]`"));
    }
}
