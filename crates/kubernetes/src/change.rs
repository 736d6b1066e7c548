//! A change of the servers that clients are routed to. wirelab sets labels, the cluster applies the change in its own
//! time, and the change is complete once the clients' pods see it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::names::name_of_servers;
use crate::pods::Pods;
use crate::service;
use crate::watch::Watch;
use wirelab_agent::{Call, ROUTING_TIMEOUT, output};
use wirelab_lab::LabError;
use wirelab_model::network::SERVER_NAME;

/// Extra time, beyond [`CONVERGENCE_TIMEOUT`], for the agent's answer.
pub(crate) const SAYING: Duration = Duration::from_secs(10);

/// How clients find servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By the address of a service or a node, where the pods behind it answer with their names.
    Address(SocketAddr),
    /// By the headless service's name.
    Name,
}

/// A change in progress.
pub(crate) struct Change {
    way: Way,
    /// The servers' pods, with their addresses.
    servers: Vec<(String, IpAddr)>,
    /// The pods of clients that must see the change.
    lookouts: Vec<String>,
    /// The headless service's endpoints, until they are as wanted.
    slices: Option<Watch<EndpointSlice>>,
    /// The checks in the clients' pods that still run.
    looks: Vec<Call>,
    deadline: Instant,
}

impl Change {
    /// Routes the clients in these pods to exactly these servers.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn order(
        pods: &mut Pods,
        namespace: &str,
        way: Way,
        names: &[String],
        clients: &[String],
    ) -> Result<Self, LabError> {
        let lost = |name: &String| LabError::cluster(format!("the pod {name} is not there"));
        let server =
            |name: &String| Ok::<_, LabError>((name.clone(), pods.hosts.get(name).ok_or_else(|| lost(name))?.address));
        let servers = names.iter().map(server).collect::<Result<Vec<_>, _>>()?;
        pods.serve(names)?;
        let lookouts = pods.lookouts(clients);
        let deadline = Instant::now() + ROUTING_TIMEOUT + SAYING;
        let mut change = Self { way, servers, lookouts, slices: None, looks: Vec::new(), deadline };
        match way {
            Way::Address(_) => change.looks = change.begin_to_look(pods)?,
            Way::Name => change.slices = Some(service::watch(pods, namespace, name_of_servers().1)?),
        }
        Ok(change)
    }

    /// Whether the clients' pods see the change now.
    ///
    /// # Errors
    /// If a check fails, or the deadline has passed.
    pub(crate) fn is_seen(&mut self, pods: &Pods) -> Result<bool, LabError> {
        self.is_seen_by(pods, Instant::now())
    }

    /// Waits until the clients' pods see the change.
    ///
    /// # Errors
    /// If they do not before the deadline.
    pub(crate) fn wait(mut self, pods: &Pods) -> Result<(), LabError> {
        // Incomplete at its own deadline is an error.
        self.is_seen_by(pods, self.deadline).map(drop)
    }

    /// Waits until `moment` for the clients' pods to see the change; returns whether they do.
    fn is_seen_by(&mut self, pods: &Pods, moment: Instant) -> Result<bool, LabError> {
        // A name server caches the old addresses if it is asked too early.
        if let Some(slices) = &mut self.slices {
            let wanted: BTreeSet<_> = self.servers.iter().map(|(_, address)| *address).collect();
            let leads =
                |slices: &BTreeMap<String, EndpointSlice>| (service::ready(slices.values()) == wanted).then_some(());
            if slices.find(moment, leads)?.is_none() {
                if Instant::now() < self.deadline {
                    return Ok(false);
                }
                let (service, ready) = (name_of_servers().1, service::ready(slices.objects().values()));
                return Err(LabError::cluster(format!(
                    "the service {service} has the endpoints {ready:?}, not {wanted:?}"
                ))
                .remedy("are its servers ready, and does the controller of endpoint slices run?"));
            }
            self.slices = None;
            self.looks = self.begin_to_look(pods)?;
        }
        let mut blind = Vec::new();
        for mut look in self.looks.drain(..) {
            if look.answer(moment)?.is_none() {
                blind.push(look);
            }
        }
        self.looks = blind;
        if !self.looks.is_empty() && Instant::now() >= self.deadline {
            let why = "the agent in the client's pod does not say whether it finds the servers";
            return Err(LabError::cluster(why));
        }
        Ok(self.looks.is_empty())
    }

    /// Kills the checks that still run in the clients' pods, where no endpoint runs.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn abandon(self, pods: &Pods) -> Result<(), LabError> {
        // A lost pod has no checks, and is replaced when it is needed.
        self.lookouts
            .iter()
            .filter(|pod| pods.hosts.contains_key(*pod))
            .try_for_each(|pod| output(&pods.remote(pod), &["sweep"], Vec::new(), Instant::now() + SAYING).map(drop))
    }

    fn begin_to_look(&self, pods: &Pods) -> Result<Vec<Call>, LabError> {
        let mut command = Vec::new();
        match self.way {
            Way::Address(address) => {
                command.extend(["find".to_owned(), address.to_string()]);
                command.extend(self.servers.iter().map(|(name, _)| name.clone()));
            }
            Way::Name => {
                command.extend(["resolve".to_owned(), SERVER_NAME.to_owned()]);
                command.extend(self.servers.iter().map(|(_, address)| address.to_string()));
            }
        }
        let command: Vec<_> = command.iter().map(String::as_str).collect();
        let look = |pod: &String| Call::start(&pods.remote(pod), &command, Vec::new());
        self.lookouts.iter().map(look).collect()
    }
}
