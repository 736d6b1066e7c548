//! The witness: a process that captures packets and reads TCP accounts inside network namespaces.
//!
//! Capturing at an interface requires being in its network namespace, and therefore in the user namespace that owns it,
//! which wirelab itself must not enter. wirelab starts itself as `wirelab witness`, once per run, and sends it orders
//! as JSON lines; each order gets one answer. The witness ends at the end of its input, and with wirelab.

mod connections;
mod orders;
mod process;
mod ring;
mod watch;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use wirelab_model::missing::Missing;

pub(crate) use orders::{Answer, Listener, Order, Selection, Transports};
pub use process::main;

/// The subcommand of wirelab that runs the witness.
pub const SUBCOMMAND: &str = "witness";

/// Time-out of an answer. The longest wait within an order is [`watch::SETTLING`].
const TIMEOUT: Duration = Duration::from_secs(20);

/// wirelab's handle of the witness. The process starts at the first order and ends when the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Mutex<Slot>>);

#[derive(Debug, Default)]
struct Slot {
    running: Option<Running>,
    /// The file for the log of the process.
    log: Option<PathBuf>,
}

impl Witness {
    /// Tests whether packets can be captured here, in a network namespace of the witness's own.
    ///
    /// # Errors
    /// The reason, if they cannot.
    pub fn can_capture(&self) -> Result<(), Missing> {
        self.ask(&Order::Try).map(|_| ())
    }

    /// Names the file for the log of the process, an absolute path.
    pub fn log_at(&self, path: PathBuf) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).log = Some(path);
    }

    /// Sends an order and waits for its answer.
    ///
    /// # Errors
    /// If the process cannot be started, has ended, or reports a failure.
    pub(crate) fn ask(&self, order: &Order) -> Result<Answer, Missing> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut running = match slot.running.take() {
            Some(running) => running,
            None => Running::start(slot.log.as_deref())?,
        };
        let answer = running.ask(order);
        // After an error the process ends: a late answer to this order must not be taken for the answer to the next.
        slot.running = answer.is_ok().then_some(running);
        match answer? {
            Answer::Failed { why } => Err(why),
            answer => Ok(answer),
        }
    }
}

#[derive(Debug)]
struct Running {
    child: Child,
    /// `None` only during drop.
    orders: Option<ChildStdin>,
    answers: ChildStdout,
    unread: Vec<u8>,
}

impl Running {
    fn start(log: Option<&Path>) -> Result<Self, Missing> {
        let attempt = |error: std::io::Error| Missing::failed("cannot start the witness process", error);
        let mut child = Command::new(std::env::current_exe().map_err(attempt)?)
            .arg(SUBCOMMAND)
            // Ctrl-C in a terminal goes to wirelab only, which ends the trial first.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(attempt)?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take().expect("standard output is piped"));
        let mut running = Self { child, orders, answers, unread: Vec::new() };
        match log {
            Some(path) => running.ask(&Order::Log { path: path.to_owned() }).map(|_| running),
            None => Ok(running),
        }
    }

    fn ask(&mut self, order: &Order) -> Result<Answer, Missing> {
        let mut line = serde_json::to_vec(order).map_err(|error| Missing::failed("writing an order", error))?;
        line.push(b'\n');
        let orders = self.orders.as_mut().expect("the pipe is there until it is dropped");
        orders.write_all(&line).map_err(|_| Missing::WitnessEnded)?;
        let deadline = Instant::now() + TIMEOUT;
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| Missing::failed("reading the answer of the witness process", error));
            }
            if !readable(&self.answers, deadline)? {
                let attempt = "an answer of the witness process".to_owned();
                return Err(Missing::TimedOut { attempt, seconds: TIMEOUT.as_secs() });
            }
            let mut buffer = [0; 4096];
            match self.answers.read(&mut buffer) {
                Ok(count @ 1..) => self.unread.extend(&buffer[..count]),
                Ok(0) | Err(_) => return Err(Missing::WitnessEnded),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The end of input ends the witness; none of its resources outlive it.
        drop(self.orders.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for input or its end. Returns false after the deadline.
fn readable(source: impl AsFd, deadline: Instant) -> Result<bool, Missing> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&source, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(Missing::failed("waiting for the witness process", error)),
        }
    }
}
