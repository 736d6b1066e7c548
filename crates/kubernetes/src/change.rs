//! A change of the servers that clients find: ordered by labels, carried out by the cluster in its own time, and believed when the
//! client's pod sees it.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::agent::{PATIENCE, SUBCOMMAND};
use crate::call::{Call, output};
use crate::names::{PROGRAM, name_of_servers};
use crate::pods::Pods;
use crate::service;
use wirelab_lab::LabError;
use wirelab_model::network::SERVER_NAME;

/// How often it is looked at where nothing else is done meanwhile.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Beyond the time that the cluster has: until its agent has said so.
const SAYING: Duration = Duration::from_secs(10);

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
    /// What still looks in them, once it does.
    looks: Option<Vec<Call>>,
    deadline: Instant,
}

impl Change {
    /// Orders that the clients in these pods find these servers' and no others.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn order(pods: &mut Pods, way: Way, names: &[String], clients: &[String]) -> Result<Self, LabError> {
        let lost = |name: &String| LabError(format!("the pod {name} is not there"));
        let server = |name: &String| Ok((name.clone(), pods.hosts.get(name).ok_or_else(|| lost(name))?.address));
        let servers = names.iter().map(server).collect::<Result<Vec<_>, _>>()?;
        pods.serve(names)?;
        let lookouts = pods.lookouts(clients);
        let mut change = Self { way, servers, lookouts, looks: None, deadline: Instant::now() + PATIENCE + SAYING };
        if matches!(way, Way::Address(_)) {
            change.looks = Some(change.begin_to_look(pods)?);
        }
        Ok(change)
    }

    /// Whether the client's pod sees it by now.
    ///
    /// # Errors
    /// If it never will.
    pub(crate) fn is_seen(&mut self, pods: &Pods, namespace: &str) -> Result<bool, LabError> {
        let is_late = Instant::now() > self.deadline;
        if let Some(looks) = &mut self.looks {
            let mut blind = Vec::new();
            for mut look in looks.drain(..) {
                if look.answer(Instant::now())?.is_none() {
                    blind.push(look);
                }
            }
            let seen = blind.is_empty();
            *looks = blind;
            let late =
                || LabError("the agent in the client's pod does not say whether it finds the servers".to_owned());
            return if is_late && !seen { Err(late()) } else { Ok(seen) };
        }
        // A name that is asked for too early is remembered with its old addresses by the name server.
        let (service, wanted) = (name_of_servers().1, self.addresses());
        let ready = service::ready(pods, namespace, service)?;
        if ready == wanted {
            self.looks = Some(self.begin_to_look(pods)?);
        } else if is_late {
            return Err(LabError(format!(
                "the service {service} has the endpoints {ready:?}, not {wanted:?}; are its servers ready, and does the controller of \
                 endpoint slices run?"
            )));
        }
        Ok(false)
    }

    /// Waits until it does.
    ///
    /// # Errors
    /// If it does not in time.
    pub(crate) fn wait(mut self, pods: &Pods, namespace: &str) -> Result<(), LabError> {
        while !self.is_seen(pods, namespace)? {
            sleep(LOOK_EVERY);
        }
        Ok(())
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

    fn addresses(&self) -> BTreeSet<IpAddr> {
        self.servers.iter().map(|(_, address)| *address).collect()
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
