//! An endpoint on another host, started and controlled through the agent.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirelab_model::event::{Command, Configured, Event};

use crate::call::output;
use crate::files::{self, Files, Sent};
use crate::remote::{Ended, Piece, Remote, State, Stream};
use crate::there::{NOT_INSTALLED, Output};
use wirelab_lab::{EventError, Exit, ExitStatus, LabError, Launch, Lines, Log, Process};

/// Time-out of a file transfer.
const SENDING: Duration = Duration::from_secs(120);

/// Time-out of a kill.
const KILLING: Duration = Duration::from_secs(20);

/// How long the news of a host's state may take.
const KNOWING: Duration = Duration::from_secs(10);

/// How long to wait for the rest of an ended endpoint's standard error.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_millis(500);

/// A running endpoint. It ends with its host and, by contract, with its standard input.
pub struct RemoteProcess {
    who: String,
    remote: Arc<dyn Remote>,
    stream: Box<dyn Stream>,
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

impl RemoteProcess {
    /// Sends the spec's files to a host, unless it has them already, and starts the endpoint there. Its `ready` will
    /// contain `facts`.
    ///
    /// # Errors
    /// If that fails; the message has the host's state if that is the reason.
    pub fn start(
        remote: Arc<dyn Remote>,
        sent: &mut Sent,
        facts: Configured,
        launch: &Launch<'_>,
    ) -> Result<Self, LabError> {
        let Launch { role, endpoint, spec, .. } = *launch;
        let who = format!("{} ({}) in {}", endpoint.name, role.word(), remote.name());
        let with_state = |error: LabError| match remote.state(Duration::ZERO) {
            State::Lost(loss) => LabError::process(format!("{}: {}", remote.name(), loss.what)).because(error),
            State::Works(works) => {
                remote.doubt();
                LabError::process(works).because(error)
            }
        };
        let files = Files::of(role, spec)?;
        send(remote.as_ref(), sent, &files).map_err(with_state)?;
        let log = Log::create(Some(launch.log))?;
        let spec = spec.to_string_lossy();
        // The agent in between reports the endpoint's resource usage.
        let identity = endpoint.installation.as_deref().unwrap_or(NOT_INSTALLED);
        let remedy = remote.remedy(&endpoint.name);
        let command = ["start", &endpoint.name, identity, &remedy, role.word(), "--spec", &spec];
        let mut stream = remote.run(&command).map_err(with_state)?;
        let stderr = stream.stderr().expect("standard error is taken once");
        Ok(Self {
            who,
            remote,
            stream,
            output: Output::default(),
            lines: Lines::default(),
            log: Log::follow(stderr, log)?,
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
        let mut command = vec!["give"];
        command.extend(paths.iter().map(String::as_str));
        let archive = output(self.remote.as_ref(), &command, Vec::new(), Instant::now() + SENDING)?;
        files::take(&archive, &self.results).map_err(|error| {
            LabError::process(format!("cannot fetch the results from {}", self.remote.name())).because(error)
        })
    }

    /// Sends the current list of servers.
    fn tell(&self, members: &Path) -> Result<(), LabError> {
        let archive = files::pack(&[members.to_owned()], &[]).map_err(|error| {
            LabError::process(format!("cannot send the list of servers to {}", self.who)).because(error)
        })?;
        take(self.remote.as_ref(), archive)
    }

    /// Records the endpoint's end, with the pod's state if that is the reason.
    fn bury(&mut self, ended: Ended) -> Exit {
        let mut words = self.log.last_words(LAST_WORDS_TIMEOUT);
        let mut add = |why: String| words = format!("{words}\n[{why}]").trim_start().to_owned();
        let status = match ended {
            Ended::Code(code) if code <= 128 => ExitStatus::Code(code),
            Ended::Code(code) => match self.remote.state(KNOWING) {
                State::Lost(loss) => {
                    add(format!("{}: {}", self.remote.name(), loss.what));
                    if loss.is_memory { ExitStatus::Signal(code - 128) } else { ExitStatus::Lost }
                }
                State::Works(works) => {
                    add(works);
                    ExitStatus::Signal(code - 128)
                }
            },
            Ended::Lost(why) => match self.remote.state(KNOWING) {
                State::Lost(loss) => {
                    add(format!("{}: {}", self.remote.name(), loss.what));
                    if loss.is_memory { ExitStatus::Signal(libc::SIGKILL) } else { ExitStatus::Lost }
                }
                State::Works(works) => {
                    self.remote.doubt();
                    add(format!("{works}, but {} was lost: {why}", self.who));
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
        output(self.remote.as_ref(), &["sweep"], Vec::new(), Instant::now() + KILLING).map(drop)
    }

    fn kill(&mut self) -> Exit {
        self.stream.close();
        let swept = self.sweep();
        let deadline = Instant::now() + KILLING;
        let mut words = match &swept {
            // Output of a killed endpoint is discarded.
            Ok(()) => loop {
                match self.stream.read(deadline) {
                    Piece::Bytes(_) => {}
                    Piece::Ended(_) => break String::new(),
                    Piece::Deadline => break format!("[{} did not end within {KILLING:?} after SIGKILL]", self.who),
                }
            },
            Err(error) => format!("[it could not be killed: {error}]"),
        };
        if let State::Lost(loss) = self.remote.state(Duration::ZERO) {
            words = format!("{words}\n[{}: {}]", self.remote.name(), loss.what);
        }
        let last_words = format!("{}\n{words}", self.log.last_words(LAST_WORDS_TIMEOUT)).trim().to_owned();
        let exit = Exit { status: ExitStatus::Killed, usage: None, last_words };
        self.exit = Some(exit.clone());
        exit
    }
}

impl Process for RemoteProcess {
    fn next_event(&mut self, deadline: Instant) -> Result<Event, EventError> {
        loop {
            match self.lines.next_event() {
                Some(Ok(Event::Ready { port, socket, mut configured })) => {
                    configured.extend(self.facts.drain(..));
                    return Ok(Event::Ready { port, socket, configured });
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
            match self.stream.read(deadline) {
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
        if self.stream.write(format!("{word}\n").into_bytes()) {
            return Ok(());
        }
        Err(LabError::process(format!("cannot send `{word}` to {}", self.who))
            .remedy("it no longer reads its standard input"))
    }

    fn pid(&self) -> Option<u32> {
        None
    }

    fn end(&mut self, deadline: Instant) -> Exit {
        if let Some(exit) = &self.exit {
            return exit.clone();
        }
        self.stream.close();
        loop {
            match self.stream.read(deadline) {
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

impl Drop for RemoteProcess {
    fn drop(&mut self) {
        if self.exit.is_none() {
            self.kill();
        }
    }
}

/// Sends the files that the host does not have yet.
fn send(remote: &dyn Remote, sent: &mut Sent, files: &Files) -> Result<(), LabError> {
    let new = sent.missing(&files.to);
    let archive = files::pack(&new, &files.folders)
        .map_err(|error| LabError::process(format!("cannot send files to {}", remote.name())).because(error))?;
    take(remote, archive)?;
    sent.add(&new);
    Ok(())
}

/// Unpacks an archive on a host.
fn take(remote: &dyn Remote, archive: Vec<u8>) -> Result<(), LabError> {
    output(remote, &["take"], archive, Instant::now() + SENDING).map(drop)
}
