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
use crate::netns::fabric::{Answer, Ask, Hosts, SUBCOMMAND, Tallied};
use crate::process::{Home, prepare};

/// Time limit to create the network, and for orders that do not wait for the link.
const PATIENCE: Duration = Duration::from_secs(20);

/// Time limit of a link measurement, beyond ten round trips: queues must drain several times.
const MEASURING: Duration = Duration::from_secs(60);

/// The network of a run. Drop removes it.
#[derive(Debug)]
pub(crate) struct Network {
    child: Child,
    /// `None` only during drop.
    orders: Option<ChildStdin>,
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
            |error: std::io::Error| LabError(format!("cannot start the process that holds the network: {error}"));
        let mut command = Command::new(program);
        command.arg(SUBCOMMAND).current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        prepare(&mut command, Some(guard.registration()?), None);
        let mut child = command.spawn().map_err(attempt)?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take().expect("standard output is piped"));
        let mut network = Self { child, orders, answers, guard, unread: Vec::new(), owner: None };
        match network.answer(Instant::now() + PATIENCE)? {
            Answer::Ready { owner } => network.owner = owner,
            other => return Err(unexpected(&other)),
        }
        Ok(network)
    }

    /// Namespaces for the processes of a host.
    pub(crate) fn home(&self, host: &Path) -> Result<Home, LabError> {
        let open = |path: &Path| match File::open(path) {
            Ok(file) => Ok(file.into()),
            Err(error) => Err(LabError(format!("cannot enter the network: opening {}: {error}", path.display()))),
        };
        Ok(Home { owner: self.owner.as_deref().map(open).transpose()?, network: Some(open(host)?), names: None })
    }

    /// Creates the network of a trial.
    pub(crate) fn prepare(&mut self, job: &Job, seed: u64) -> Result<Hosts, LabError> {
        match self.ask(&Ask::Prepare { job: Box::new(job.clone()), seed }, PATIENCE)? {
            Answer::Prepared(hosts) => Ok(hosts),
            other => Err(unexpected(&other)),
        }
    }

    /// Makes the service at this port stand for exactly these servers, given by number.
    pub(crate) fn publish(&mut self, port: u16, servers: Vec<(u32, SocketAddrV4)>) -> Result<(), LabError> {
        match self.ask(&Ask::Publish { port, servers }, PATIENCE)? {
            Answer::Published => Ok(()),
            other => Err(unexpected(&other)),
        }
    }

    /// Counters since the network was prepared.
    pub(crate) fn tally(&mut self) -> Result<Tallied, LabError> {
        match self.ask(&Ask::Tally, PATIENCE)? {
            Answer::Tallied(tallied) => Ok(tallied),
            other => Err(unexpected(&other)),
        }
    }

    /// Shapes a link and measures it.
    pub(crate) fn measure(&mut self, link: &Link, seed: u64) -> Result<Reading, LabError> {
        let patience = MEASURING + link.round_trip.to_std() * 10;
        match self.ask(&Ask::Measure { link: *link, seed }, patience)? {
            Answer::Measured(reading) => Ok(reading),
            other => Err(unexpected(&other)),
        }
    }

    fn ask(&mut self, ask: &Ask, patience: Duration) -> Result<Answer, LabError> {
        let mut line = serde_json::to_vec(ask).expect("an order always serialises");
        line.push(b'\n');
        let orders = self.orders.as_mut().expect("the pipe is there until the network is dropped");
        orders.write_all(&line).map_err(|error| LabError(format!("{GONE}: {error}")))?;
        self.answer(Instant::now() + patience)
    }

    fn answer(&mut self, deadline: Instant) -> Result<Answer, LabError> {
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return match serde_json::from_slice(&line) {
                    Ok(Answer::Failed { why }) => Err(LabError(why)),
                    Ok(answer) => Ok(answer),
                    Err(error) => Err(LabError(format!("the process that holds the network speaks nonsense: {error}"))),
                };
            }
            let waited = readable([Some(self.answers.as_fd())], deadline)
                .map_err(|error| LabError(format!("cannot wait for the network: {error}")))?;
            if waited == [false] {
                return Err(LabError("the process that holds the network does not answer in time".to_owned()));
            }
            let mut buffer = [0; 4096];
            match self.answers.read(&mut buffer) {
                Ok(count @ 1..) => self.unread.extend(&buffer[..count]),
                Ok(0) => return Err(LabError(GONE.to_owned())),
                Err(error) => return Err(LabError(format!("{GONE}: {error}"))),
            }
        }
    }
}

const GONE: &str = "the process that holds the network has ended; did someone kill it? Start wirelab again";

fn unexpected(answer: &Answer) -> LabError {
    LabError(format!("the process that holds the network answered something else than it was asked: {answer:?}"))
}

impl Drop for Network {
    fn drop(&mut self) {
        // The end of the process removes the network: nothing else holds the namespaces.
        drop(self.orders.take());
        let pid = rustix::process::Pid::from_child(&self.child);
        let _ = self.child.kill();
        self.guard.forget(pid);
        let _ = self.child.wait();
    }
}
