//! A client that the user brings: any program that sends requests to a URL and ends, behind the endpoint contract.
//!
//! The measured window is the life of the program. What wirelab cannot see of its requests, it takes from what the
//! program prints, as far as the user says where.

pub mod output;

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Stdout, Write};
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Instant;

use rustix::io::retry_on_intr;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use serde::Deserialize;
use wirelab_contract::endpoint::Description;
use wirelab_contract::event::{Command, Configured, Event};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::{ClientSpec, ConnectionPolicy, Extent, Recording, Schedule};
use wirelab_contract::totals::{Printed, Totals};

use self::output::Patterns;
use crate::contract::{Output, read_spec, read_words};
use crate::own_program::{describe, role, start};
use crate::refusal::Refusal;

/// Bytes of output that are searched for values.
const LONGEST_OUTPUT: u64 = 16 << 20;

/// The program of a user, and where its output has values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnClient {
    /// The words of the command line.
    pub words: Vec<String>,
    /// A regular expression for each value.
    #[serde(default)]
    pub output: BTreeMap<Printed, String>,
}

impl OwnClient {
    /// Its description: it claims every HTTP version and gRPC, because only the user knows.
    #[must_use]
    pub fn describe(&self, name: &str) -> Description {
        let protocols = Protocol::ALL.into_iter().filter(|protocol| protocol.is_http() || protocol.is_grpc()).collect();
        Description { client: Some(role(protocols)), ..describe(name) }
    }

    /// Runs the program as the client of a spec. Returns the exit status of the contract.
    #[must_use]
    pub fn run(&self, spec_text: &str) -> i32 {
        let mut output = Output(io::stdout());
        let result = self.request(spec_text, &mut output);
        output.close(result)
    }

    fn request(&self, spec_text: &str, events: &mut Output<Stdout>) -> Result<(), Refusal> {
        let spec: ClientSpec = read_spec(spec_text)?;
        if spec.recording != Recording::Totals {
            return Err(Refusal::unsupported(
                "`recording` is not `totals`, and a program of the user records no requests",
            ));
        }
        let patterns = Patterns::new(&self.output).map_err(|error| Refusal::failed(error.to_string()))?;
        let (sender, inbox) = channel();
        let commands = sender.clone();
        read_words(BufReader::new(io::stdin()), move |command, at| {
            commands.send(Message::Command(command, at)).is_ok()
        });
        let programs = Programs { own: self, spec: &spec, sender, inbox };
        events.say(&Event::Ready { port: None, socket: None, configured: Configured::new() })?;
        programs.until(Command::Go)?;
        if let Some(warm_up) = spec.warm_up {
            programs.run(warm_up)?.reap();
        }
        events.say(&Event::Warm { until_steady: None })?;
        let begun = programs.until(Command::Go)?;
        let ended = programs.run(spec.extent)?;
        events.say(&Event::End { window_ns: ended.at.duration_since(begun).as_nanos() as u64 })?;
        programs.until(Command::Finish)?;
        let output = ended.reap();
        let printed = patterns.read(&output).map_err(|error| Refusal::failed(error.to_string()))?;
        let requests = match (printed.get(&Printed::Requests), spec.extent) {
            (Some(requests), _) => *requests,
            (None, Extent::Requests(requests)) => {
                requests.saturating_sub(printed.get(&Printed::Failed).copied().unwrap_or_default())
            }
            (None, Extent::DurationNs(_)) => {
                return Err(Refusal::unsupported("`client_output` has no `requests`, so their number is unknown"));
            }
        };
        let totals = Totals { requests, printed };
        let writing = |error: io::Error| Refusal::failed(format!("writing {}: {error}", spec.results.display()));
        let text = serde_json::to_vec(&totals).map_err(|error| writing(error.into()))?;
        std::fs::write(&spec.results, text).map_err(writing)?;
        let (errors, configured) = (Default::default(), Configured::new());
        events.say(&Event::Done { requests: Some(totals.requests), errors, configured, transport: None })
    }
}

/// What the client waits for.
enum Message {
    Command(Command, Instant),
    Ended(io::Result<()>, Instant),
}

/// A program that has ended. The kernel keeps its account until it is reaped.
struct Ended {
    child: Child,
    at: Instant,
    output: String,
}

impl Ended {
    /// Reaps the process; returns what it printed.
    fn reap(mut self) -> String {
        // Its status is known.
        let _ = self.child.wait();
        self.output
    }
}

/// Starts the program for each part of the trial.
struct Programs<'a> {
    own: &'a OwnClient,
    spec: &'a ClientSpec,
    sender: Sender<Message>,
    inbox: Receiver<Message>,
}

impl Programs<'_> {
    /// Waits for a command; returns when it came.
    fn until(&self, wanted: Command) -> Result<Instant, Refusal> {
        match self.inbox.recv() {
            Ok(Message::Command(command, at)) if command == wanted => Ok(at),
            Ok(Message::Command(command, _)) => {
                Err(Refusal::failed(format!("the client got `{}` instead of `{}`", command.word(), wanted.word())))
            }
            Ok(Message::Ended(..)) | Err(_) => Err(Refusal::failed("the client lost its input")),
        }
    }

    /// Runs the program to its end.
    fn run(&self, extent: Extent) -> Result<Ended, Refusal> {
        let words: Vec<_> = self.own.words.iter().map(|word| filled(word, self.spec, extent)).collect();
        let shown = words.join(" ");
        let failed = |what: String| Refusal::failed(format!("`{shown}` {what}"));
        let mut child = start(&words, |command| command.stdin(Stdio::null()).stdout(Stdio::piped()))?;
        let process = Pid::from_child(&child);
        let (stdout, sender) = (child.stdout.take(), self.sender.clone());
        let reader = std::thread::spawn(move || {
            let output = stdout.map_or(Ok(String::new()), read_all);
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            let ended = retry_on_intr(|| waitid(WaitId::Pid(process), options));
            // After an abort there is no receiver.
            let _ = sender.send(Message::Ended(ended.map(drop).map_err(io::Error::from), Instant::now()));
            output
        });
        let at = match self.inbox.recv() {
            Ok(Message::Ended(Ok(()), at)) => at,
            Ok(Message::Ended(Err(error), _)) => return Err(failed(format!("cannot be waited for: {error}"))),
            Ok(Message::Command(..)) | Err(_) => {
                let _ = kill_process(process, Signal::KILL);
                return Err(failed("was ended, because the trial was".to_owned()));
            }
        };
        let output = reader.join().unwrap_or_else(|_| Err(io::Error::other("a thread of wirelab ended")));
        let output = output.map_err(|error| failed(format!("printed what cannot be read: {error}")))?;
        match has_succeeded(process) {
            true => Ok(Ended { child, at, output }),
            false => match child.wait() {
                Ok(status) => Err(failed(format!("ended with {status}"))),
                Err(error) => Err(failed(format!("cannot be waited for: {error}"))),
            },
        }
    }
}

/// Whether a process ended with the status 0. It stays unreaped.
fn has_succeeded(process: Pid) -> bool {
    let ended = waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT);
    ended.ok().flatten().and_then(|status| status.exit_status()) == Some(0)
}

/// Reads what the program prints, and copies it to the log.
fn read_all(stdout: ChildStdout) -> io::Result<String> {
    let mut output = Vec::new();
    let mut stdout = stdout.take(LONGEST_OUTPUT);
    stdout.read_to_end(&mut output)?;
    // A program that prints more must not wait for a reader.
    io::copy(&mut stdout.into_inner(), &mut io::sink())?;
    let mut log = io::stderr().as_fd().try_clone_to_owned().map(std::fs::File::from)?;
    log.write_all(&output)?;
    Ok(String::from_utf8_lossy(&output).into_owned())
}

/// A word of the command line with the values of the spec.
fn filled(word: &str, spec: &ClientSpec, extent: Extent) -> String {
    let at = SocketAddr::new(spec.address, spec.port);
    let scheme = if spec.protocol.is_secure() { "https" } else { "http" };
    let connections = match spec.connections {
        ConnectionPolicy::Persistent { connections, .. } => connections,
        ConnectionPolicy::PerRequest => 1,
    };
    let workers = match spec.schedule {
        Schedule::Closed { workers, .. } => workers,
        Schedule::Open { .. } => 1,
    };
    let mut word = word
        .replace("{url}", &format!("{scheme}://{at}{}", spec.request.path))
        .replace("{address}", &spec.address.to_string())
        .replace("{port}", &spec.port.to_string())
        .replace("{connections}", &connections.to_string())
        .replace("{workers}", &workers.to_string());
    if let Some(anchor) = spec.tls.as_ref().and_then(|tls| tls.trust_anchor.as_ref()) {
        word = word.replace("{ca}", &anchor.display().to_string());
    }
    match extent {
        Extent::Requests(requests) => word.replace("{requests}", &requests.to_string()),
        Extent::DurationNs(ns) => word.replace("{seconds}", &(ns as f64 / 1e9).to_string()),
    }
}
