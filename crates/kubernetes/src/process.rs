//! An endpoint in a pod, started and controlled through the API server.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use wirelab_model::event::{Command, Configured, Event};
use wirelab_model::plan::{Course, Job};

use crate::agent::{NOT_INSTALLED, Output, SUBCOMMAND};
use crate::call::output;
use crate::cluster::Cluster;
use crate::exec::{Ended, Exec, Piece};
use crate::files::{self, Files};
use crate::names::PROGRAM;
use crate::pods::{Host, post_mortem};
use wirelab_lab::Lines;
use wirelab_lab::Log;
use wirelab_lab::{EventError, Exit, ExitStatus, LabError, Launch, Process, Role};

/// Time-out of a file transfer to or from a pod.
const SENDING: Duration = Duration::from_secs(120);

/// Time-out of a kill.
const KILLING: Duration = Duration::from_secs(20);

/// How long the cluster may take to report a pod's state: nodes report periodically.
const KNOWING: Duration = Duration::from_secs(10);

/// How long to wait for the rest of an ended endpoint's standard error.
const LAST_WORDS_PATIENCE: Duration = Duration::from_millis(500);

/// A running endpoint. It ends with its pod and, by contract, with its standard input.
pub(crate) struct PodProcess {
    who: String,
    pod: String,
    node: String,
    cluster: Arc<Cluster>,
    api: Api<Pod>,
    exec: Exec,
    output: Output,
    lines: Lines,
    log: Log,
    /// Facts that the endpoint's `ready` cannot contain.
    facts: Configured,
    /// Files to fetch after `done`.
    results: Vec<PathBuf>,
    /// The list of servers, which is sent again before each `reach`.
    members: Option<PathBuf>,
    exit: Option<Exit>,
}

impl PodProcess {
    /// Sends the spec's files to a pod and starts the endpoint there.
    ///
    /// # Errors
    /// If that fails; the message has the pod's state if that is the reason.
    pub(crate) fn start(
        cluster: &Arc<Cluster>,
        api: &Api<Pod>,
        pod: &str,
        host: &mut Host,
        job: &Job,
        launch: &Launch<'_>,
    ) -> Result<Self, LabError> {
        let who = format!("{} ({}) in the pod {pod}", launch.endpoint.name, launch.role.word());
        let node = host.spot.node.clone().unwrap_or_else(|| "a node without a name".to_owned());
        let with_state = |error: LabError| match post_mortem(cluster, api, pod, Duration::ZERO) {
            Some(loss) => LabError::cluster(format!("the pod {pod}: {}", loss.what)).because(error),
            None => {
                cluster.doubt.store(true, Ordering::Relaxed);
                LabError::cluster(format!("for the cluster the pod {pod} on {node} still runs")).because(error)
            }
        };
        let files = Files::of(launch.role, launch.spec)?;
        send(cluster, api, pod, host, &files).map_err(with_state)?;
        let log = Log::create(Some(launch.log))?;
        let spec = launch.spec.to_string_lossy();
        // The agent in between reports the endpoint's resource usage.
        let (name, identity) = (&*launch.endpoint.name, launch.endpoint.installation.as_deref());
        let identity = identity.unwrap_or(NOT_INSTALLED);
        let command = [PROGRAM, SUBCOMMAND, "start", name, identity, launch.role.word(), "--spec", &spec];
        let mut exec = Exec::start(cluster, api, pod, &command).map_err(with_state)?;
        let stderr = exec.stderr().expect("standard error is taken once");
        let mut facts = Configured::new();
        // Further clients, possibly hundreds, report only their position; clients of a timeline share the first
        // client's pod.
        let is_told = |fact: &str| match launch.role {
            Role::Client if launch.number > 0 => job.course == Course::Steady && matches!(fact, "node" | "zone"),
            Role::Client | Role::Server => true,
            // Sidecars and control planes run in the pods of other endpoints.
            Role::Sidecar(_) | Role::ControlPlane => false,
        };
        for (fact, value) in host.facts.iter().filter(|(fact, _)| is_told(fact)) {
            // The first server's facts have the same names as an only server's.
            let name = if launch.number == 0 { fact.clone() } else { format!("{fact}_{}", launch.number) };
            facts.insert(name, value.clone());
        }
        Ok(Self {
            who,
            pod: pod.to_owned(),
            node,
            cluster: Arc::clone(cluster),
            api: api.clone(),
            exec,
            output: Output::default(),
            lines: Lines::default(),
            log: Log::follow(stderr, log),
            facts,
            results: files.from,
            members: files.members,
            exit: None,
        })
    }

    /// Fetches the files that the endpoint wrote.
    fn fetch(&self) -> Result<(), LabError> {
        if self.results.is_empty() {
            return Ok(());
        }
        let paths: Vec<_> = self.results.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let mut command = vec![PROGRAM, SUBCOMMAND, "give"];
        command.extend(paths.iter().map(String::as_str));
        let archive = output(&self.cluster, &self.api, &self.pod, &command, Vec::new(), Instant::now() + SENDING)?;
        files::take(&archive, &self.results).map_err(|error| {
            LabError::cluster(format!("cannot take the results from the pod {}", self.pod)).because(error)
        })
    }

    /// Sends the current list of servers.
    fn tell(&self, members: &Path) -> Result<(), LabError> {
        let archive = files::pack(&[members.to_owned()], &[], false)
            .map_err(|error| LabError::cluster(format!("cannot tell {} who serves", self.who)).because(error))?;
        take(&self.cluster, &self.api, &self.pod, archive)
    }

    /// Records the endpoint's end, with the pod's state if that is the reason.
    fn bury(&mut self, ended: Ended) -> Exit {
        let mut words = self.log.last_words(LAST_WORDS_PATIENCE);
        let mut add = |why: String| words = format!("{words}\n[{why}]").trim_start().to_owned();
        let status = match ended {
            Ended::Code(code) if code <= 128 => ExitStatus::Code(code),
            Ended::Code(code) => {
                if let Some(loss) = post_mortem(&self.cluster, &self.api, &self.pod, KNOWING) {
                    add(format!("the pod {}: {}", self.pod, loss.what));
                    if loss.is_memory { ExitStatus::Signal(code - 128) } else { ExitStatus::Lost }
                } else {
                    add(format!("the pod {} still runs", self.pod));
                    ExitStatus::Signal(code - 128)
                }
            }
            Ended::Lost(why) => match post_mortem(&self.cluster, &self.api, &self.pod, KNOWING) {
                Some(loss) => {
                    add(format!("the pod {}: {}", self.pod, loss.what));
                    if loss.is_memory { ExitStatus::Signal(libc::SIGKILL) } else { ExitStatus::Lost }
                }
                None => {
                    self.cluster.doubt.store(true, Ordering::Relaxed);
                    let node = &self.node;
                    add(format!(
                        "for the cluster the pod {} on {node} still runs, but {} was lost: {why}",
                        self.pod, self.who
                    ));
                    // The endpoint may still run without a connection that could end it.
                    if let Err(error) = self.sweep() {
                        add(error.to_string());
                    }
                    ExitStatus::Lost
                }
            },
        };
        let exit = Exit { status, usage: self.output.usage(), last_words: words };
        self.exit = Some(exit.clone());
        exit
    }

    fn sweep(&self) -> Result<(), LabError> {
        let command = [PROGRAM, SUBCOMMAND, "sweep"];
        output(&self.cluster, &self.api, &self.pod, &command, Vec::new(), Instant::now() + KILLING).map(drop)
    }

    fn kill(&mut self) -> Exit {
        self.exec.close();
        let swept = self.sweep();
        let deadline = Instant::now() + KILLING;
        let mut words = match &swept {
            // Output of a killed endpoint is discarded.
            Ok(()) => loop {
                match self.exec.read(deadline) {
                    Piece::Bytes(_) => {}
                    Piece::Ended(_) => break String::new(),
                    Piece::Deadline => break format!("[{} did not end within {KILLING:?} after SIGKILL]", self.who),
                }
            },
            Err(error) => format!("[it could not be killed: {error}]"),
        };
        if let Some(loss) = post_mortem(&self.cluster, &self.api, &self.pod, Duration::ZERO) {
            words = format!("{words}\n[the pod {}: {}]", self.pod, loss.what);
        }
        let last_words = format!("{}\n{words}", self.log.last_words(LAST_WORDS_PATIENCE)).trim().to_owned();
        let exit = Exit { status: ExitStatus::Killed, usage: None, last_words };
        self.exit = Some(exit.clone());
        exit
    }
}

impl Process for PodProcess {
    fn next_event(&mut self, deadline: Instant) -> Result<Event, EventError> {
        loop {
            match self.lines.next_event() {
                Some(Ok(Event::Ready { port, mut configured })) => {
                    configured.extend(self.facts.drain(..));
                    return Ok(Event::Ready { port, configured });
                }
                Some(Ok(done @ Event::Done { .. })) => match self.fetch() {
                    Ok(()) => return Ok(done),
                    Err(error) => return Err(EventError::Ended(self.bury(Ended::Lost(error.to_string())))),
                },
                Some(line) => return line,
                None => {}
            }
            if let Some(exit) = &self.exit {
                return Err(EventError::Ended(exit.clone()));
            }
            match self.exec.read(deadline) {
                Piece::Deadline => return Err(EventError::Deadline),
                Piece::Bytes(bytes) => self.lines.push(self.output.said(&bytes)),
                Piece::Ended(ended) => {
                    self.lines.end();
                    self.bury(ended);
                }
            }
        }
    }

    fn send(&mut self, command: Command) -> Result<(), LabError> {
        let word = command.word();
        if let (Command::Reach, Some(members)) = (command, &self.members) {
            self.tell(members)?;
        }
        if self.exec.write(format!("{word}\n").into_bytes()) {
            return Ok(());
        }
        Err(LabError::cluster(format!("cannot send `{word}` to {}", self.who))
            .remedy("it no longer reads its standard input"))
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn end(&mut self, deadline: Instant) -> Exit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        self.exec.close();
        loop {
            match self.exec.read(deadline) {
                // Only the resource usage is needed, but the process cannot end while its output stream is full.
                Piece::Bytes(bytes) if Instant::now() < deadline => {
                    self.output.said(&bytes);
                }
                Piece::Ended(ended) => return self.bury(ended),
                Piece::Bytes(_) | Piece::Deadline => return self.kill(),
            }
        }
    }
}

impl Drop for PodProcess {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
    }
}

/// Sends the files that the pod does not have yet.
fn send(cluster: &Arc<Cluster>, api: &Api<Pod>, pod: &str, host: &mut Host, files: &Files) -> Result<(), LabError> {
    let stamp = |path: &PathBuf| {
        let about = fs::metadata(path).ok();
        let length = about.as_ref().map_or(0, fs::Metadata::len);
        (path.clone(), length, about.and_then(|about| about.modified().ok()))
    };
    let new: Vec<_> = files.to.iter().filter(|path| !host.sent.contains(&stamp(path))).cloned().collect();
    let archive = files::pack(&new, &files.folders, false)
        .map_err(|error| LabError::cluster(format!("cannot send files to the pod {pod}")).because(error))?;
    take(cluster, api, pod, archive)?;
    host.sent.extend(new.iter().map(stamp));
    Ok(())
}

/// Unpacks an archive in a pod.
fn take(cluster: &Arc<Cluster>, api: &Api<Pod>, pod: &str, archive: Vec<u8>) -> Result<(), LabError> {
    let command = [PROGRAM, SUBCOMMAND, "take"];
    output(cluster, api, pod, &command, archive, Instant::now() + SENDING).map(drop)
}
