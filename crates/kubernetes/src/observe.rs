//! Observers of processes, at work in the pods where these are: an agent beside them reads before and after the window, and waits in it.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use wirelab_lab::{Afar, LabError, Role};
use wirelab_model::metric::{Side, Values};
use wirelab_observe::apart;

use crate::agent::SUBCOMMAND;
use crate::cluster::Cluster;
use crate::exec::{Chunks, Ended, Exec, Piece};
use crate::names::PROGRAM;

/// How long an agent may take for a word.
const ANSWERING: Duration = Duration::from_secs(20);

/// An endpoint that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Started {
    pub(crate) pod: String,
    pub(crate) role: Role,
    pub(crate) spec: PathBuf,
}

/// Those who observe a trial.
pub(crate) struct Observing {
    agents: Vec<Agent>,
    /// The observers whose work they do.
    names: Vec<String>,
}

/// One of them, for the endpoints of one role in its pod.
struct Agent {
    pod: String,
    role: Role,
    exec: Exec,
    stderr: Option<Chunks>,
    said: Vec<u8>,
    /// Why nothing that it reads counts any more.
    failed: Option<String>,
}

impl Observing {
    /// Starts those for the endpoints that there are, as far as observers are wanted that can work there; absent: none is.
    ///
    /// # Errors
    /// If the cluster refuses.
    pub(crate) fn start(
        cluster: &Arc<Cluster>,
        api: &Api<Pod>,
        started: &[Started],
        wanted: &[&str],
    ) -> Result<Option<Self>, LabError> {
        let names: Vec<_> =
            apart::APART.iter().filter(|name| wanted.contains(name)).map(|name| (*name).to_owned()).collect();
        if names.is_empty() {
            return Ok(None);
        }
        let joined = names.join(",");
        let mut agents = Vec::new();
        for ((pod, role), specs) in places(started) {
            let mut command = vec![PROGRAM, SUBCOMMAND, "observe", role, &joined];
            command.extend(specs.iter().map(String::as_str));
            let mut exec = Exec::start(cluster, api, &pod, &command)?;
            let stderr = exec.stderr();
            let role = if role == Role::Client.word() { Role::Client } else { Role::Server };
            agents.push(Agent { pod, role, exec, stderr, said: Vec::new(), failed: None });
        }
        let mut observing = Self { agents, names };
        observing.hear_all();
        Ok(Some(observing))
    }

    /// Says a word to all of them, and waits until each has done it.
    fn say(&mut self, word: &str) {
        for agent in &self.agents {
            // One that no longer reads has ended, which is heard next.
            agent.exec.write(format!("{word}\n").into_bytes());
        }
        self.hear_all();
    }

    fn hear_all(&mut self) {
        let deadline = Instant::now() + ANSWERING;
        for agent in self.agents.iter_mut().filter(|agent| agent.failed.is_none()) {
            if let Err(LabError(why)) = agent.hear(deadline) {
                agent.failed = Some(why);
            }
        }
    }

    /// What was read at one side.
    fn of(&mut self, role: Role, word: &str) -> Result<Vec<Values>, LabError> {
        let deadline = Instant::now() + ANSWERING;
        let mut values = Vec::new();
        for agent in self.agents.iter_mut().filter(|agent| agent.role == role) {
            if let Some(why) = &agent.failed {
                return Err(LabError(why.clone()));
            }
            agent.exec.write(format!("{word}\n").into_bytes());
            let text = agent.hear(deadline)?;
            let read = serde_json::from_str(&text);
            values.push(
                read.map_err(|error| {
                    LabError(format!("the agent in the pod {} is not understood: {error}", agent.pod))
                })?,
            );
        }
        Ok(values)
    }
}

/// The specs of each role in each pod.
fn places(started: &[Started]) -> BTreeMap<(String, &'static str), Vec<String>> {
    let mut places: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for Started { pod, role, spec } in started {
        places.entry((pod.clone(), role.word())).or_default().push(spec.to_string_lossy().into_owned());
    }
    places
}

impl Afar for Observing {
    fn begin(&mut self) {
        self.say("begin");
    }

    fn end(&mut self) {
        self.say("end");
    }

    fn values(&mut self, window_ns: u64, requests: u64, bytes: u64) -> Values {
        let word = format!("values {window_ns} {requests} {bytes}");
        let mut all = Values::new();
        for (side, role) in [(Side::Client, Role::Client), (Side::Server, Role::Server)] {
            all.extend(match self.of(role, &word) {
                Ok(places) => apart::together(side, &self.names, &places),
                Err(LabError(why)) => apart::nowhere(side, &self.names, &why),
            });
        }
        all
    }
}

impl Agent {
    /// Its next line.
    fn hear(&mut self, deadline: Instant) -> Result<String, LabError> {
        let pod = &self.pod;
        loop {
            if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.said.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            match self.exec.read(deadline) {
                Piece::Bytes(bytes) => self.said.extend(bytes),
                Piece::Deadline => {
                    return Err(LabError(format!("who observes in the pod {pod} said nothing for {ANSWERING:?}")));
                }
                Piece::Ended(ended) => {
                    let mut words = String::new();
                    if let Some(mut stderr) = self.stderr.take() {
                        // Half a sentence is better than none.
                        let _ = stderr.read_to_string(&mut words);
                    }
                    let how = match ended {
                        Ended::Code(code) => format!("ended with exit status {code}"),
                        Ended::Lost(why) => format!("was lost: {why}"),
                    };
                    return Err(LabError(format!("who observes in the pod {pod} {how}: {}", words.trim())));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_agent_looks_at_all_endpoints_of_a_role_in_its_pod() {
        let started = |pod: &str, role, spec: &str| Started { pod: pod.to_owned(), role, spec: spec.into() };
        let all = [
            started("near-0", Role::Server, "/s0"),
            started("client", Role::Client, "/c0"),
            started("client", Role::Client, "/c1"),
        ];
        let places: Vec<_> = places(&all).into_iter().collect();
        let expected = [
            (("client".to_owned(), "client"), vec!["/c0".to_owned(), "/c1".to_owned()]),
            (("near-0".to_owned(), "server"), vec!["/s0".to_owned()]),
        ];
        assert_eq!(places, expected);
    }
}
