//! The witness: a process that looks at networks from within.
//!
//! To look at an interface one has to be in its network namespace, and for that in the user namespace that owns it, where
//! wirelab itself must not go. So wirelab starts itself once more as `wirelab witness`, once per run, tells it by JSON lines
//! what to look at, and gets an answer to each. The witness ends at the end of its input, and with wirelab.

mod connections;
mod orders;
mod process;
mod ring;
mod watch;

use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

pub(crate) use orders::{Answer, Listener, Order, Sought, Transports};
pub use process::main;

/// The word on wirelab's command line that makes it this process.
pub const SUBCOMMAND: &str = "witness";

/// How long an answer may take. The longest wait within an order is [`watch::SETTLING`].
const PATIENCE: Duration = Duration::from_secs(20);

/// wirelab's side of the witness: started when it is first asked, ended when the last clone is dropped.
#[derive(Debug, Clone, Default)]
pub struct Witness(Arc<Mutex<Option<Running>>>);

impl Witness {
    /// Tries whether packets can be captured here, in a network namespace of its own.
    ///
    /// # Errors
    /// If they cannot; says why.
    pub fn can_capture(&self) -> Result<(), String> {
        self.ask(&Order::Try).map(|_| ())
    }

    /// Gives an order and waits for its answer.
    ///
    /// # Errors
    /// If the process cannot be started or has ended, or says that it could not do it.
    pub(crate) fn ask(&self, order: &Order) -> Result<Answer, String> {
        let mut slot = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.is_none() {
            *slot = Some(Running::start()?);
        }
        let answer = slot.as_mut().map_or_else(|| Err(GONE.to_owned()), |running| running.ask(order));
        if answer.is_err() {
            // Its next answer could be that to this order.
            *slot = None;
        }
        match answer? {
            Answer::Failed { why } => Err(why),
            answer => Ok(answer),
        }
    }
}

const GONE: &str = "the process that looks at the network has ended; did someone kill it?";

#[derive(Debug)]
struct Running {
    child: Child,
    /// Absent only while it is dropped.
    orders: Option<ChildStdin>,
    answers: ChildStdout,
    unread: Vec<u8>,
}

impl Running {
    fn start() -> Result<Self, String> {
        let attempt = |error: std::io::Error| format!("cannot start the process that looks at the network: {error}");
        let mut child = Command::new(std::env::current_exe().map_err(attempt)?)
            .arg(SUBCOMMAND)
            // Ctrl-C in a terminal is for wirelab, which ends the trial first.
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(attempt)?;
        let (orders, answers) = (child.stdin.take(), child.stdout.take().expect("standard output is piped"));
        Ok(Self { child, orders, answers, unread: Vec::new() })
    }

    fn ask(&mut self, order: &Order) -> Result<Answer, String> {
        let gone = |error| format!("{GONE} ({error})");
        let mut line = serde_json::to_vec(order).map_err(|error| format!("an order cannot be written: {error}"))?;
        line.push(b'\n');
        let orders = self.orders.as_mut().expect("the pipe is there until it is dropped");
        orders.write_all(&line).map_err(gone)?;
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.unread.drain(..=end).collect();
                return serde_json::from_slice(&line)
                    .map_err(|error| format!("the process that looks at the network speaks nonsense: {error}"));
            }
            if !readable(&self.answers, deadline)? {
                return Err("the process that looks at the network does not answer in time".to_owned());
            }
            let mut buffer = [0; 4096];
            match self.answers.read(&mut buffer) {
                Ok(count @ 1..) => self.unread.extend(&buffer[..count]),
                Ok(0) => return Err(GONE.to_owned()),
                Err(error) => return Err(gone(error)),
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The end of its input ends it; nothing that it holds outlives it.
        drop(self.orders.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until there is something to read, or the end. False: the deadline passed.
fn readable(source: impl AsFd, deadline: Instant) -> Result<bool, String> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&source, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return Ok(ready > 0),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("waiting for the process that looks at the network: {error}")),
        }
    }
}
