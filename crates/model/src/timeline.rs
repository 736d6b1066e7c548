//! What is done while the measured window of a trial goes on, and which parts of the window are looked at by themselves.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::network::Servers;
use crate::plan::Job;
use crate::spec::Extent;
use crate::units::Share;

/// What is done while the measured window goes on. Every trial begins with one client and the servers of the setting `servers`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Timeline {
    /// What is done, in the order of time.
    pub actions: Vec<Action>,
    /// Parts of the measured window that get metrics of their own, by name (`requests@NAME`). Reports in text show the first one.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub windows: IndexMap<String, Part>,
}

/// One thing that is done: exactly one of `servers`, `clients`, `restart`, `kill` and `drain` is set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Action {
    /// Its name in windows, metrics and reports: `T2`.
    pub name: String,
    /// When, as a share of the measured window: `25 %`.
    pub at: Share,
    /// How many servers there are from now on, and where, as the setting `servers`; only those that are `far` can change. A new one
    /// is behind the service's address, or the name, at once; one that is taken away leaves it and is stopped, the newest first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Servers>,
    /// How many clients there are from now on. Each is a process of its own and does what the workload says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// `clients`: each client ends, and another process begins in its place, which finds the servers anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Restarted>,
    /// The server of this number, from 0, is killed (SIGKILL), and leaves the service's address, or the name, after that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kill: Option<u32>,
    /// The server of this number, from 0, leaves the service's address, or the name, as a pod does that is not ready any more, and goes on to
    /// answer whatever comes to it over connections that are open. What it answers from then on is `server_drained@`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drain: Option<u32>,
}

/// Who is restarted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Restarted {
    /// Every client.
    Clients,
}

/// A part of the measured window, between two actions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Part {
    /// The action that it begins with. Default: the begin of the measured window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The action that it ends with. Default: the end of the measured window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// What an action changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// How many servers there are.
    Servers(Servers),
    /// How many clients there are.
    Clients(u32),
    /// Every client is another process.
    RestartClients,
    /// A server is killed.
    Kill(u32),
    /// A server gets no new connections.
    Drain(u32),
}

impl Action {
    /// What it changes; absent unless exactly one thing is set.
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

/// A timeline as it goes in a trial of a job: who is there when. Servers and clients are numbered in the order of their coming.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Course {
    /// How many servers there ever are.
    pub servers: u32,
    /// Every client that there ever is.
    pub clients: Vec<Life>,
    /// The actions.
    pub steps: Vec<TimelineStep>,
    /// The length of the measured window in nanoseconds.
    pub window_ns: u64,
}

/// When a client is there, and which servers are when it comes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// When it begins, in nanoseconds of the measured window.
    pub from_ns: u64,
    /// When it ends.
    pub until_ns: u64,
    /// The servers that it finds.
    pub serving: Vec<u32>,
}

/// An action, and what it means.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TimelineStep {
    /// Its name.
    pub name: String,
    /// When it is due, in nanoseconds of the measured window.
    pub at_ns: u64,
    /// The servers that are reached from then on; absent: they stay the same.
    pub serving: Option<Vec<u32>>,
    /// The servers that are stopped.
    pub stopped: Vec<u32>,
    /// The server that is killed.
    pub killed: Option<u32>,
    /// The clients that end.
    pub ending: Vec<usize>,
    /// The clients that begin.
    pub beginning: Vec<usize>,
}

impl Course {
    /// The course of a job. Without a timeline it has no steps, and clients that are there from begin to end.
    #[must_use]
    pub fn of(job: &Job) -> Self {
        let window_ns = match job.extent {
            Extent::DurationNs(ns) => ns,
            Extent::Requests(_) => 0,
        };
        let mut serving: Vec<u32> = (0..job.servers.count()).collect();
        let mut course = Self { servers: job.servers.count(), clients: Vec::new(), steps: Vec::new(), window_ns };
        let mut going = course.begin(job.clients as usize, 0, &serving);
        for action in job.timeline.iter().flat_map(|timeline| &timeline.actions) {
            let at_ns = (action.at.0 * window_ns as f64).round() as u64;
            let mut step = TimelineStep { name: action.name.clone(), at_ns, ..TimelineStep::default() };
            match action.change() {
                Some(Change::Servers(wanted)) => {
                    while serving.len() > wanted.count() as usize {
                        step.stopped.extend(serving.pop());
                    }
                    while serving.len() < wanted.count() as usize {
                        serving.push(course.servers);
                        course.servers += 1;
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
                    step.beginning = course.begin(going.len(), at_ns, &serving);
                    step.ending = std::mem::replace(&mut going, step.beginning.clone());
                }
                Some(Change::Clients(wanted)) => {
                    step.ending = going.split_off(going.len().min(wanted as usize));
                    step.beginning = course.begin(wanted as usize - going.len(), at_ns, &serving);
                    going.extend(&step.beginning);
                }
                None => {}
            }
            for client in &step.ending {
                course.clients[*client].until_ns = at_ns;
            }
            course.steps.push(step);
        }
        course
    }

    fn begin(&mut self, count: usize, from_ns: u64, serving: &[u32]) -> Vec<usize> {
        let first = self.clients.len();
        let life = Life { from_ns, until_ns: self.window_ns, serving: serving.to_vec() };
        self.clients.resize(first + count, life);
        (first..first + count).collect()
    }
}

/// What was really done in a trial with a timeline, and what the servers said meanwhile. Times are nanoseconds of the measured window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// Each action that was begun.
    pub actions: Vec<ActionRecord>,
    /// Each client that sent requests.
    pub clients: Vec<ClientRecord>,
    /// Each server.
    pub servers: Vec<ServerRecord>,
    /// How many requests the servers said that they had answered since they were started, again and again.
    pub answered: Vec<Answered>,
    /// The response times of successive intervals of the window.
    #[serde(default)]
    pub intervals: Vec<Interval>,
}

/// An action that was carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRecord {
    /// Its name.
    pub name: String,
    /// When it was due.
    pub due_ns: u64,
    /// When it began.
    pub began_ns: u64,
    /// How long it took until everything had changed: in a cluster, until its network led clients to the new servers.
    pub took_ns: u64,
}

/// A client's time.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientRecord {
    /// When it was told to go.
    pub from_ns: u64,
    /// The length of its own window.
    pub window_ns: u64,
    /// The number of its first connection in the samples; its others follow.
    pub first_connection: u32,
}

/// A server's time: when new connections were to reach it, from the begin of one action to that of another. A cluster takes its time for
/// that ([`ActionRecord::took_ns`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerRecord {
    /// From when on; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_ns: Option<u64>,
    /// Until when; absent: to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until_ns: Option<u64>,
}

/// What the servers said at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answered {
    /// When the last of them had said it.
    pub at_ns: u64,
    /// Requests that each server has answered; of one that is gone, what it said last.
    pub requests: Vec<u64>,
}

/// The requests that ended in an interval of the window.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Interval {
    /// Its end.
    pub until_ns: u64,
    /// Requests that succeeded.
    pub requests: u64,
    /// Requests that failed.
    pub failed: u64,
    /// P50, P95 and P99 of the response times in nanoseconds; absent: too few requests succeeded for it.
    pub percentiles: [Option<u64>; 3],
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Protocol;

    fn action(name: &str, percent: f64) -> Action {
        let (servers, clients, restart, kill, drain) = Default::default();
        Action { name: name.to_owned(), at: Share(percent / 100.0), servers, clients, restart, kill, drain }
    }

    fn course(actions: Vec<Action>) -> Course {
        let timeline = Some(Timeline { actions, windows: IndexMap::new() });
        let servers = Servers { near: 0, far: 2 };
        Course::of(&Job { extent: Extent::DurationNs(1000), servers, timeline, ..Job::plain(Protocol::Grpcc) })
    }

    #[test]
    fn servers_and_clients_are_numbered_as_they_come_and_know_whom_they_find() {
        let far = |far| Some(Servers { near: 0, far });
        let course = course(vec![
            Action { servers: far(3), ..action("T2", 25.0) },
            Action { restart: Some(Restarted::Clients), ..action("T3", 50.0) },
            Action { clients: Some(3), ..action("T4", 70.0) },
            Action { kill: Some(0), ..action("T5", 80.0) },
            Action { servers: far(3), ..action("T6", 90.0) },
        ]);
        assert_eq!((course.servers, course.window_ns), (4, 1000));
        let life = |from_ns, until_ns, serving: &[u32]| Life { from_ns, until_ns, serving: serving.to_vec() };
        let late = life(700, 1000, &[0, 1, 2]);
        assert_eq!(course.clients, [life(0, 500, &[0, 1]), life(500, 1000, &[0, 1, 2]), late.clone(), late]);
        let serving: Vec<_> = course.steps.iter().map(|step| step.serving.clone()).collect();
        assert_eq!(serving, [Some(vec![0, 1, 2]), None, None, Some(vec![1, 2]), Some(vec![1, 2, 3])]);
        assert_eq!((&course.steps[1].ending, &course.steps[1].beginning), (&vec![0], &vec![1]));
        assert_eq!((&course.steps[2].ending, &course.steps[2].beginning), (&vec![], &vec![2, 3]));
    }

    #[test]
    fn fewer_servers_and_clients_are_the_older_ones() {
        let course = course(vec![
            Action { clients: Some(3), ..action("more", 20.0) },
            Action { clients: Some(1), ..action("fewer", 40.0) },
            Action { servers: Some(Servers { near: 0, far: 1 }), ..action("smaller", 60.0) },
        ]);
        assert_eq!(course.steps[1].ending, [1, 2]);
        assert_eq!(course.clients.iter().map(|life| life.until_ns).collect::<Vec<_>>(), [1000, 400, 400]);
        assert_eq!(
            (course.steps[2].stopped.as_slice(), course.steps[2].serving.as_deref()),
            (&[1][..], Some(&[0][..]))
        );
    }

    #[test]
    fn a_drained_server_is_left_alone_and_not_found_any_more() {
        let course = course(vec![
            Action { drain: Some(0), ..action("T2", 25.0) },
            Action { restart: Some(Restarted::Clients), ..action("T3", 50.0) },
        ]);
        let drained = &course.steps[0];
        assert_eq!((drained.serving.as_deref(), drained.killed), (Some(&[1][..]), None));
        assert!(drained.stopped.is_empty());
        assert_eq!(course.clients[1].serving, [1]);
    }

    #[test]
    fn an_action_changes_exactly_one_thing() {
        assert_eq!(action("nothing", 10.0).change(), None);
        let two = Action { clients: Some(2), kill: Some(0), ..action("two", 10.0) };
        assert_eq!(two.change(), None);
        assert_eq!(Action { kill: None, ..two }.change(), Some(Change::Clients(2)));
    }
}
