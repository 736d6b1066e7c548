//! Actions during the measured window of a trial, and parts of the window with metrics of their own.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::Servers;
use crate::plan::Job;
use crate::spec::Extent;
use crate::units::Share;

/// Actions during the measured window. Every trial begins with one client and the servers of the setting `servers`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// The actions in order of time.
    pub actions: Vec<Action>,
    /// Named parts of the measured window, each with metrics of its own (`requests@NAME`). Reports in text show the
    /// first part.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub windows: IndexMap<String, Part>,
}

/// One action: exactly one of `servers`, `clients`, `restart`, `kill` and `drain` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its name in windows, metrics and reports: `T2`.
    pub name: String,
    /// Time of the action, as a share of the measured window: `25 %`.
    pub at: Share,
    /// Number and location of the servers from now on, as in the setting `servers`; only the number of `far` servers
    /// can change. A new server is reachable by the service's address or the name at once. A removed server leaves the
    /// address and stops; the newest go first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Servers>,
    /// Number of clients from now on. Each is a separate process and performs the workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// `clients`: each client ends, and a new process takes its place and looks up the servers anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restarted>,
    /// Number, from 0, of a server to kill (SIGKILL). It leaves the service's address or the name after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<u32>,
    /// Number, from 0, of a server to drain: it leaves the service's address or the name, as a pod does when it is no
    /// longer ready, but still answers requests over open connections. Metric of its requests from then on:
    /// `server_drained@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<u32>,
}

/// The endpoints to restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Restarted {
    /// Every client.
    Clients,
}

/// A part of the measured window between two actions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Part {
    /// Name of the action at its beginning. Default: the beginning of the measured window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Name of the action at its end. Default: the end of the measured window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The change that an action makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Number and location of the servers.
    Servers(Servers),
    /// Number of clients.
    Clients(u32),
    /// Each client is replaced by a new process.
    RestartClients,
    /// Number of the killed server.
    Kill(u32),
    /// Number of the server that gets no new connections.
    Drain(u32),
}

impl Action {
    /// The change, or `None` unless exactly one change is set.
    #[must_use]
    pub fn change(&self) -> Option<Change> {
        let changes = [
            self.servers.map(Change::Servers),
            self.clients.map(Change::Clients),
            self.restart.map(|Restarted::Clients| Change::RestartClients),
            self.kill.map(Change::Kill),
            self.drain.map(Change::Drain),
        ];
        let mut set = changes.into_iter().flatten();
        set.next().filter(|_| set.next().is_none())
    }
}

/// A timeline applied to a job: when each server and client exists. Servers and clients are numbered in order of
/// arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetimes {
    /// Number of servers over the whole window.
    pub servers: u32,
    /// All clients over the whole window.
    pub clients: Vec<Life>,
    /// The actions.
    pub steps: Vec<TimelineStep>,
    /// The length of the measured window in nanoseconds.
    pub window_ns: u64,
}

/// The lifetime of a client, and the servers at its start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// Start, in nanoseconds of the measured window.
    pub from_ns: u64,
    /// End, in nanoseconds of the measured window.
    pub until_ns: u64,
    /// Numbers of the servers at its start.
    pub serving: Vec<u32>,
}

/// An action with its consequences.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineStep {
    pub name: String,
    /// Due time, in nanoseconds of the measured window.
    pub at_ns: u64,
    /// Numbers of the servers that clients reach from then on; absent: no change.
    pub serving: Option<Vec<u32>>,
    /// Numbers of the servers to stop.
    pub stopped: Vec<u32>,
    /// Number of the server to kill.
    pub killed: Option<u32>,
    /// Indices of the clients that end.
    pub ending: Vec<usize>,
    /// Indices of the clients that start.
    pub beginning: Vec<usize>,
}

impl Lifetimes {
    /// The lifetimes of a job. A steady course has no steps, and all clients live for the whole window.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let window_ns = match job.load.extent {
            Extent::DurationNs(ns) => ns,
            Extent::Requests(_) => 0,
        };
        let mut serving: Vec<u32> = (0..job.server_count()).collect();
        let mut lifetimes = Self { servers: job.server_count(), clients: Vec::new(), steps: Vec::new(), window_ns };
        let mut going = lifetimes.begin(job.load.clients as usize, 0, &serving);
        for action in job.timeline().into_iter().flat_map(|timeline| &timeline.actions) {
            let at_ns = (action.at.0 * window_ns as f64).round() as u64;
            let mut step = TimelineStep { name: action.name.clone(), at_ns, ..TimelineStep::default() };
            match action.change() {
                Some(Change::Servers(wanted)) => {
                    while serving.len() > wanted.count() as usize {
                        step.stopped.extend(serving.pop());
                    }
                    while serving.len() < wanted.count() as usize {
                        serving.push(lifetimes.servers);
                        lifetimes.servers += 1;
                    }
                    step.serving = Some(serving.clone());
                }
                Some(Change::Kill(number)) => {
                    serving.retain(|one| *one != number);
                    (step.killed, step.serving) = (Some(number), Some(serving.clone()));
                }
                Some(Change::Drain(number)) => {
                    serving.retain(|one| *one != number);
                    step.serving = Some(serving.clone());
                }
                Some(Change::RestartClients) => {
                    step.beginning = lifetimes.begin(going.len(), at_ns, &serving);
                    step.ending = std::mem::replace(&mut going, step.beginning.clone());
                }
                Some(Change::Clients(wanted)) => {
                    step.ending = going.split_off(going.len().min(wanted as usize));
                    step.beginning = lifetimes.begin(wanted as usize - going.len(), at_ns, &serving);
                    going.extend(&step.beginning);
                }
                None => {}
            }
            for client in &step.ending {
                lifetimes.clients[*client].until_ns = at_ns;
            }
            lifetimes.steps.push(step);
        }
        lifetimes
    }

    fn begin(&mut self, count: usize, from_ns: u64, serving: &[u32]) -> Vec<usize> {
        let first = self.clients.len();
        let life = Life { from_ns, until_ns: self.window_ns, serving: serving.to_vec() };
        self.clients.resize(first + count, life);
        (first..first + count).collect()
    }
}

/// The record of a trial with a timeline: executed actions and counts of the servers. Times are nanoseconds of the
/// measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// The actions that began.
    pub actions: Vec<ActionRecord>,
    /// The clients that sent requests.
    pub clients: Vec<ClientRecord>,
    pub servers: Vec<ServerRecord>,
    /// Repeated readings of each server's count of answered requests since its start.
    pub answered: Vec<Answered>,
    /// Response times in successive intervals of the window.
    #[serde(default)]
    pub intervals: Vec<Interval>,
}

/// An executed action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    pub name: String,
    /// Due time.
    pub due_ns: u64,
    /// Actual time.
    pub began_ns: u64,
    /// Duration until the change was complete: in a cluster, until its network routed clients to the new servers.
    pub took_ns: u64,
}

/// The lifetime of a client.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// Time of its command `go`.
    pub from_ns: u64,
    /// The length of its own window.
    pub window_ns: u64,
    /// Number of its first connection in the samples; its other connections follow.
    pub first_connection: u32,
}

/// Period in which new connections should reach a server, from the beginning of one action to that of another. In a
/// cluster the change takes time ([`ActionRecord::took_ns`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// Start; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// End; absent: the end of the window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
}

/// The servers' counts at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// Time of the last server's answer.
    pub at_ns: u64,
    /// Requests that each server has answered; for a stopped server, its last count.
    pub requests: Vec<u64>,
}

/// Requests that ended in an interval of the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// End of the interval.
    pub until_ns: u64,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// P50, P95 and P99 of the response times in nanoseconds; absent: too few successful requests.
    pub percentiles: [Option<u64>; 3],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Course, Load, OwnServers, Target};
    use crate::protocol::Protocol;

    fn action(name: &str, percent: f64) -> Action {
        let (servers, clients, restart, kill, drain) = Default::default();
        Action { name: name.to_owned(), at: Share(percent / 100.0), servers, clients, restart, kill, drain }
    }

    fn lifetimes(actions: Vec<Action>) -> Lifetimes {
        let course = Course::Timeline(Timeline { actions, windows: IndexMap::new() });
        let mut servers = OwnServers::one("builtin");
        servers.places = Servers { near: 0, far: 2 };
        let (target, load) = (Target::Servers(servers), Load { extent: Extent::DurationNs(1000), ..Load::plain() });
        Lifetimes::of(&Job { target, load, course, ..Job::plain(Protocol::Grpcc) })
    }

    #[test]
    fn servers_and_clients_are_numbered_in_order_of_arrival_and_clients_know_their_servers() {
        let far = |far| Some(Servers { near: 0, far });
        let lifetimes = lifetimes(vec![
            Action { servers: far(3), ..action("T2", 25.0) },
            Action { restart: Some(Restarted::Clients), ..action("T3", 50.0) },
            Action { clients: Some(3), ..action("T4", 70.0) },
            Action { kill: Some(0), ..action("T5", 80.0) },
            Action { servers: far(3), ..action("T6", 90.0) },
        ]);
        assert_eq!((lifetimes.servers, lifetimes.window_ns), (4, 1000));
        let life = |from_ns, until_ns, serving: &[u32]| Life { from_ns, until_ns, serving: serving.to_vec() };
        let late = life(700, 1000, &[0, 1, 2]);
        assert_eq!(lifetimes.clients, [life(0, 500, &[0, 1]), life(500, 1000, &[0, 1, 2]), late.clone(), late]);
        let serving: Vec<_> = lifetimes.steps.iter().map(|step| step.serving.clone()).collect();
        assert_eq!(serving, [Some(vec![0, 1, 2]), None, None, Some(vec![1, 2]), Some(vec![1, 2, 3])]);
        assert_eq!((&lifetimes.steps[1].ending, &lifetimes.steps[1].beginning), (&vec![0], &vec![1]));
        assert_eq!((&lifetimes.steps[2].ending, &lifetimes.steps[2].beginning), (&vec![], &vec![2, 3]));
    }

    #[test]
    fn the_newest_servers_and_clients_are_removed_first() {
        let lifetimes = lifetimes(vec![
            Action { clients: Some(3), ..action("more", 20.0) },
            Action { clients: Some(1), ..action("fewer", 40.0) },
            Action { servers: Some(Servers { near: 0, far: 1 }), ..action("smaller", 60.0) },
        ]);
        assert_eq!(lifetimes.steps[1].ending, [1, 2]);
        assert_eq!(lifetimes.clients.iter().map(|life| life.until_ns).collect::<Vec<_>>(), [1000, 400, 400]);
        assert_eq!(
            (lifetimes.steps[2].stopped.as_slice(), lifetimes.steps[2].serving.as_deref()),
            (&[1][..], Some(&[0][..]))
        );
    }

    #[test]
    fn a_drained_server_keeps_running_and_gets_no_new_clients() {
        let lifetimes = lifetimes(vec![
            Action { drain: Some(0), ..action("T2", 25.0) },
            Action { restart: Some(Restarted::Clients), ..action("T3", 50.0) },
        ]);
        let drained = &lifetimes.steps[0];
        assert_eq!((drained.serving.as_deref(), drained.killed), (Some(&[1][..]), None));
        assert!(drained.stopped.is_empty());
        assert_eq!(lifetimes.clients[1].serving, [1]);
    }

    #[test]
    fn an_action_changes_exactly_one_thing() {
        assert_eq!(action("nothing", 10.0).change(), None);
        let two = Action { clients: Some(2), kill: Some(0), ..action("two", 10.0) };
        assert_eq!(two.change(), None);
        assert_eq!(Action { kill: None, ..two }.change(), Some(Change::Clients(2)));
    }
}
