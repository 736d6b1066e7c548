//! A change of the servers that clients find: ordered by labels, carried out by the cluster in its own time, and believed when the
//! client's pod sees it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use k8s_openapi::api::discovery::v1::EndpointSlice;

use crate::agent::{PATIENCE, SUBCOMMAND};
use crate::call::{Call, output};
use crate::names::{PROGRAM, name_of_servers};
use crate::pods::Pods;
use crate::service;
use crate::watch::Watch;
use wirelab_lab::LabError;
use wirelab_model::network::SERVER_NAME;

/// Beyond the time that the cluster has: until its agent has said so.
pub(crate) const SAYING: Duration = Duration::from_secs(10);

/// How clients find servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By this address, of a service or a node, at which the pods behind it say who they are.
    Address(SocketAddr),
    /// By the name.
    Name,
}

/// A change under way.
pub(crate) struct Change {
    way: Way,
    /// The servers' pods, with their addresses.
    servers: Vec<(String, IpAddr)>,
    /// The pods of clients that have to see it.
    lookouts: Vec<String>,
    /// What the name leads to, as long as nobody looks in these.
    slices: Option<Watch<EndpointSlice>>,
    /// What still looks in them.
    looks: Vec<Call>,
    deadline: Instant,
}

impl Change {
    /// Orders that the clients in these pods find these servers' and no others.
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
        let lost = |name: &String| LabError(format!("the pod {name} is not there"));
        let server = |name: &String| Ok((name.clone(), pods.hosts.get(name).ok_or_else(|| lost(name))?.address));
        let servers = names.iter().map(server).collect::<Result<Vec<_>, _>>()?;
        pods.serve(names)?;
        let lookouts = pods.lookouts(clients);
        let deadline = Instant::now() + PATIENCE + SAYING;
        let mut change = Self { way, servers, lookouts, slices: None, looks: Vec::new(), deadline };
        match way {
            Way::Address(_) => change.looks = change.begin_to_look(pods)?,
            Way::Name => change.slices = Some(service::watch(pods, namespace, name_of_servers().1)?),
        }
        Ok(change)
    }

    /// Whether the client's pod sees it by now.
    ///
    /// # Errors
    /// If it never will.
    pub(crate) fn is_seen(&mut self, pods: &Pods) -> Result<bool, LabError> {
        self.is_seen_by(pods, Instant::now())
    }

    /// Waits until it does.
    ///
    /// # Errors
    /// If it does not in time.
    pub(crate) fn wait(mut self, pods: &Pods) -> Result<(), LabError> {
        // Not seen by its deadline is an error.
        self.is_seen_by(pods, self.deadline).map(drop)
    }

    /// Whether it does at this moment, for which it is waited.
    fn is_seen_by(&mut self, pods: &Pods, moment: Instant) -> Result<bool, LabError> {
        // A name that is asked for too early is remembered with its old addresses by the name server.
        if let Some(slices) = &mut self.slices {
            let wanted: BTreeSet<_> = self.servers.iter().map(|(_, address)| *address).collect();
            let leads =
                |slices: &BTreeMap<String, EndpointSlice>| (service::ready(slices.values()) == wanted).then_some(());
            if slices.find(moment, leads)?.is_none() {
                if Instant::now() < self.deadline {
                    return Ok(false);
                }
                let (service, ready) = (name_of_servers().1, service::ready(slices.objects().values()));
                return Err(LabError(format!(
                    "the service {service} has the endpoints {ready:?}, not {wanted:?}; are its servers ready, and does the controller \
                     of endpoint slices run?"
                )));
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
            return Err(LabError(why.to_owned()));
        }
        Ok(self.looks.is_empty())
    }

    /// Ends what still looks in the pods of clients, where no endpoint runs.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn abandon(self, pods: &Pods) -> Result<(), LabError> {
        let command = [PROGRAM, SUBCOMMAND, "sweep"];
        // One that was lost meanwhile has nothing left that looks, and is replaced when it is needed.
        self.lookouts.iter().filter(|pod| pods.hosts.contains_key(*pod)).try_for_each(|pod| {
            output(&pods.cluster, &pods.api, pod, &command, Vec::new(), Instant::now() + SAYING).map(drop)
        })
    }

    fn begin_to_look(&self, pods: &Pods) -> Result<Vec<Call>, LabError> {
        let mut command = vec![PROGRAM.to_owned(), SUBCOMMAND.to_owned()];
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
        let look = |pod: &String| Call::start(&pods.cluster, &pods.api, pod, &command, Vec::new());
        self.lookouts.iter().map(look).collect()
    }
}
