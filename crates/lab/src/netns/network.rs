//! Client of the process that holds the network (`wirelab fabric`).

use std::fs::File;
use std::io::{Read, Write};
use std::net::SocketAddrV4;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use wirelab_model::link::{Link, Reading};
use wirelab_model::plan::Job;

use crate::LabError;
use crate::deadline::readable;
use crate::guard::Guard;
use crate::lines::shortened;
use crate::netns::fabric::{Answer, Hosts, Request, SUBCOMMAND, Tallied};
use crate::process::{Home, Rights, prepare};

/// Time limit to create the network, and for requests that do not wait for the link.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Time limit of a link measurement, beyond ten round trips: queues must drain several times.
const MEASURE_TIMEOUT: Duration = Duration::from_secs(60);

/// The network of a run. Drop removes it.
#[derive(Debug)]
pub(crate) struct Network {
    child: Child,
    /// `None` only during drop.
    requests: Option<ChildStdin>,
    answers: ChildStdout,
    guard: Arc<Guard>,
    unread: Vec<u8>,
    /// User namespace that owns the network namespaces, if it differs from wirelab's.
    pub(crate) owner: Option<PathBuf>,
}

impl Network {
    /// Starts the process.
    pub(crate) fn start(program: &Path, guard: Arc<Guard>) -> Result<Self, LabError> {
        let attempt =
            |error: std::io::Error| LabError::network("cannot start the process that holds the network").because(error);
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        prepare(&mut command, Some(guard.registration()?), None, Rights::All);
        let mut child = command.spawn().map_err(attempt)?;
        let (requests, answers) = (child.stdin.take(), child.stdout.take().expect("standard output is piped"));
        let mut network = Self { child, requests, answers, guard, unread: Vec::new(), owner: None };
        match network.answer(Instant::now() + REQUEST_TIMEOUT)? {
            Answer::Ready { owner } => network.owner = owner,
            other => return Err(unexpected(&other)),
        }
        Ok(network)
    }

    /// Names the file for the log of the process.
    pub(crate) fn log_at(&mut self, path: PathBuf) -> Result<(), LabError> {
        match self.send(&Request::Log { path }, REQUEST_TIMEOUT)? {
            Answer::Logging => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Namespaces for the processes of a host.
    pub(crate) fn home(&self, host: &Path) -> Result<Home, LabError> {
        let open = |path: &Path| match File::open(path) {
            Ok(file) => Ok(file.into()),
            Err(error) => {
                Err(LabError::network(format!("cannot enter the network: cannot open {}", path.display()))
                    .because(error))
            }
        };
        let owner = self.owner.as_deref().map(open).transpose()?;
        Ok(Home { owner, network: Some(open(host)?), ..Home::default() })
    }

    /// Creates the network of a trial.
    pub(crate) fn prepare(&mut self, job: &Job, seed: u64) -> Result<Hosts, LabError> {
        match self.send(&Request::Prepare { job: Box::new(job.clone()), seed }, REQUEST_TIMEOUT)? {
            Answer::Prepared(hosts) => Ok(hosts),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes the service at this port stand for exactly these servers, given by number.
    pub(crate) fn publish(&mut self, port: u16, servers: Vec<(u32, SocketAddrV4)>) -> Result<(), LabError> {
        match self.send(&Request::Publish { port, servers }, REQUEST_TIMEOUT)? {
            Answer::Published => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Removes the service.
    pub(crate) fn withdraw(&mut self) -> Result<(), LabError> {
        match self.send(&Request::Withdraw, REQUEST_TIMEOUT)? {
            Answer::Withdrawn => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Counters since the network was prepared.
    pub(crate) fn tally(&mut self) -> Result<Tallied, LabError> {
        match self.send(&Request::Tally, REQUEST_TIMEOUT)? {
            Answer::Tallied(tallied) => Ok(tallied),
            other => Err(unexpected(&other)),
        }
    }

    /// Shapes a link and measures it.
    pub(crate) fn measure(&mut self, link: &Link, seed: u64) -> Result<Reading, LabError> {
        let timeout = MEASURE_TIMEOUT + link.round_trip.to_std() * 10;
        match self.send(&Request::Measure { link: *link, seed }, timeout)? {
            Answer::Measured(reading) => Ok(reading),
            other => Err(unexpected(&other)),
        }
    }

    fn send(&mut self, request: &Request, timeout: Duration) -> Result<Answer, LabError> {
        let mut line = serde_json::to_vec(request).expect("a request always serialises");
        tracing::debug!(request = shortened(&line), "sent to the process that holds the network");
        line.push(b'\n');
        let requests = self.requests.as_mut().expect("the pipe is there until the network is dropped");
        requests.write_all(&line).map_err(|error| LabError::network(GONE).because(error))?;
        self.answer(Instant::now() + timeout)
    }

    fn answer(&mut self, deadline: Instant) -> Result<Answer, LabError> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(Answer::Failed(failure)) => Err(failure.into()),
                    Ok(answer) => Ok(answer),
                    Err(error) => {
                        Err(LabError::network("the process that holds the network sent an invalid answer")
                            .because(error))
                    }
                };
            }
            let waited = readable([Some(self.answers.as_fd())], deadline)
                .map_err(|error| LabError::network("cannot wait for the network").because(error))?;
            if waited == [false] {
                return Err(LabError::network("the process that holds the network does not answer in time"));
            }
            let mut buffer = [0; 4096];
            match self.answers.read(&mut buffer) {
                Ok(count @ 1..) => self.unread.extend(&buffer[..count]),
                Ok(0) => return Err(LabError::network(GONE)),
                Err(error) => return Err(LabError::network(GONE).because(error)),
            }
        }
    }
}

const GONE: &str = "the process that holds the network has ended; check what killed it, and start wirelab again";

fn unexpected(answer: &Answer) -> LabError {
    LabError::network(format!("the process that holds the network sent an unexpected answer: {answer:?}"))
}

impl Drop for Network {
    fn drop(&mut self) {
        // The end of the process removes the network: nothing else holds the namespaces.
        drop(self.requests.take());
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = self.child.kill();
        self.guard.forget(pid);
        let _ = self.child.wait();
    }
}
