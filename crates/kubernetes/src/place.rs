//! The pods of a job's endpoints, and their places.

use std::hash::{DefaultHasher, Hash, Hasher};

use wirelab_lab::internet::own_servers;
use wirelab_lab::{LabError, fixed_network};
use wirelab_model::network::Network;
use wirelab_model::placement::Distance;
use wirelab_model::plan::{Course, Job, OwnServers};
use wirelab_model::timeline::Lifetimes;

use crate::distance::{Place, word};
use crate::{INFO, names};

/// The pods of a job's servers with their places, in order; includes servers that a timeline adds later.
///
/// # Errors
/// If a cluster cannot meet the job's settings; the message names the remedy.
pub(crate) fn servers(job: &Job) -> Result<Vec<(String, Place)>, LabError> {
    let OwnServers { places, nodes, .. } = own_servers(INFO.name, job)?;
    let far = fixed_network::distance(INFO.name, job)?;
    if job.topology.network == Network::Direct {
        return Err(LabError::unsupported(format!(
            "in the lab `{}` hosts are pods, joined by the cluster's network",
            INFO.name
        ))
        .remedy("set `network = \"overlay\"`, or leave it out"));
    }
    if far == Distance::SameNode && places.far > 0 {
        return Err(LabError::unsupported(format!(
            "`servers` is `{places}`, but the placement `{}` has no other node",
            job.topology.placement
        ))
        .remedy("set `servers` to `near`, or `placement` to `other-zone`"));
    }
    if let Some(labels) = nodes.as_ref().filter(|_| places.far == 0) {
        return Err(LabError::unsupported(format!(
            "`server_nodes` is `{labels}`, but all servers are on the client's node (`servers` is `{places}`)"
        ))
        .remedy("set `client_nodes`, or `servers` to `far` and `placement` to `other-node`"));
    }
    let host = |number| {
        let (name, place) = match places.is_near(number) {
            true => named(Place { distance: Distance::SameNode, nodes: None }, number),
            false => named(Place { distance: far, nodes: nodes.clone() }, number - places.near),
        };
        (in_its_mesh(job, name), place)
    };
    Ok((0..Lifetimes::of(job).servers).map(host).collect())
}

/// Names a pod by its place, so that jobs with equal places share pods.
fn named(place: Place, number: u32) -> (String, Place) {
    let word = word(place.distance);
    let name = match &place.nodes {
        None => format!("{word}-{number}"),
        Some(labels) => {
            let mut hasher = DefaultHasher::new();
            labels.hash(&mut hasher);
            format!("{word}-{:08x}-{number}", hasher.finish() as u32)
        }
    };
    (name, place)
}

/// The pods of a job's clients, in order. All clients of a timeline share one pod.
pub(crate) fn clients(job: &Job) -> Vec<String> {
    (0..job.load.clients).map(|number| in_its_mesh(job, names::client(number))).collect()
}

/// The pod of one client.
pub(crate) fn client(job: &Job, number: u32) -> String {
    in_its_mesh(
        job,
        match job.course {
            Course::Steady => names::client(number),
            Course::Timeline(_) => names::CLIENT.to_owned(),
        },
    )
}

/// The pod's name inside or outside the mesh. A pod joins the mesh when it is created, so pods inside and outside
/// differ.
fn in_its_mesh(job: &Job, name: String) -> String {
    if job.is_in_linkerd() { names::meshed(&name) } else { name }
}

#[cfg(test)]
pub(crate) mod tests {
    use wirelab_model::link::preset;
    use wirelab_model::network::Servers;
    use wirelab_model::nodes::Labels;
    use wirelab_model::plan::{Load, Reach, Target, Topology};
    use wirelab_model::protocol::Protocol;
    use wirelab_model::spec::Extent;
    use wirelab_model::units::Span;

    use super::*;

    pub(crate) fn job(placement: &str, places: Servers, reach: Reach) -> Job {
        let link = preset(placement).map(|preset| preset.link);
        let network = Network::Overlay;
        let target = Target::Servers(OwnServers { places, reach, ..OwnServers::one("builtin") });
        let topology = Topology { link, network, ..Topology::at(placement) };
        Job { topology, target, ..Job::plain(Protocol::H2) }
    }

    /// The job with these labels of its servers' nodes.
    fn on(text: &str, job: &Job) -> Job {
        let servers = OwnServers { nodes: labels(text), ..job.servers().unwrap().clone() };
        Job { target: Target::Servers(servers), ..job.clone() }
    }

    pub(crate) fn labels(text: &str) -> Option<Labels> {
        serde_json::from_value(text.into()).ok()
    }

    pub(crate) const NEAR: Servers = Servers { near: 1, far: 0 };
    pub(crate) const SPREAD: Servers = Servers { near: 1, far: 2 };

    #[test]
    fn a_server_that_comes_later_has_its_pod_from_the_start() {
        let later = serde_json::json!({ "actions": [{ "name": "T2", "at": "50 %", "servers": "near + 3 far" }] });
        let timeline = serde_json::from_value(later).unwrap();
        let extent = Extent::DurationNs(1_000_000_000);
        let course = Course::Timeline(timeline);
        let job = Job { course, load: Load { extent, ..Load::plain() }, ..job("other-zone", SPREAD, Reach::Service) };
        let names: Vec<_> = servers(&job).unwrap().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["near-0", "other-0", "other-1", "other-2"]);
        assert_eq!(client(&job, 7), "client", "all clients of a timeline are in one pod");
    }

    #[test]
    fn what_a_cluster_cannot_be_is_refused_with_the_remedy() {
        let plain = job("multi-az", Servers::ONE, Reach::Server);
        let [mut shaped, mut direct, mut offloading] = [(); 3].map(|()| plain.clone());
        (direct.topology.network, offloading.topology.offloads) = (Network::Direct, Some(true));
        shaped.topology.link.as_mut().unwrap().round_trip = Span::from_millis(9);
        for (job, remedy) in [
            (job("other-zon", Servers::ONE, Reach::Server), "did you mean `other-zone`"),
            (job("local", Servers::ONE, Reach::Server), "same-node, other-node, same-zone, other-zone"),
            (direct, "`network = \"overlay\"`"),
            (offloading, "leave `offloads` out"),
            (shaped, "leave out the keys of the link"),
            (job("same-node", Servers::ONE, Reach::Server), "set `servers` to `near`"),
            (on("disk=ssd", &job("same-node", NEAR, Reach::Server)), "set `client_nodes`"),
        ] {
            let why = servers(&job).unwrap_err().to_string();
            assert!(why.contains(remedy), "{remedy}: {why}");
        }
        let mut wire = job("lan", Servers::ONE, Reach::Server);
        wire.topology.link.as_mut().unwrap().round_trip = Span(0);
        assert_eq!(
            servers(&wire).unwrap(),
            [("node-0".to_owned(), Place { distance: Distance::OtherNode, nodes: None })]
        );
        wire.topology.link.as_mut().unwrap().mtu = 9000;
        assert!(servers(&wire).is_err());
    }

    #[test]
    fn servers_on_other_nodes_are_other_pods() {
        let plain = job("other-zone", Servers::ONE, Reach::Server);
        let name = |job: &Job| servers(job).unwrap()[0].0.clone();
        let names = [name(&plain), name(&on("disk=ssd", &plain)), name(&on("disk=hdd", &plain))];
        assert_eq!(names[0], "other-0");
        assert!(
            names[1].starts_with("other-") && names[1] != names[2] && names[1] == name(&on("disk=ssd", &plain)),
            "{names:?}"
        );
    }
}
