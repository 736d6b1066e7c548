//! Access to a host, which a lab implements for its transport.

use std::io::{ErrorKind, Read};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use wirelab_lab::LabError;

/// A host that has wirelab, so that its agent can run there.
pub trait Remote: Send + Sync {
    /// Name for messages, such as `the pod client`.
    fn name(&self) -> &str;

    /// Starts a command of the agent; the words follow `wirelab agent`.
    ///
    /// # Errors
    /// If the host cannot be reached, or refuses.
    fn run(&self, words: &[&str]) -> Result<Box<dyn Stream>, LabError>;

    /// The state of the host. A failure may become known later than its effects, so this waits for it until `timeout`.
    fn state(&self, timeout: Duration) -> State;

    /// Notes that the host did not answer although it seems to work, so that it is checked before its next use.
    fn doubt(&self);

    /// The remedy if the host lacks the endpoint of this name.
    fn remedy(&self, endpoint: &str) -> String;
}

/// The known state of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    /// The host works; the text is the evidence.
    Works(String),
    /// The host does not work.
    Lost(Loss),
}

/// The reason why a host no longer works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The event that ended the host or the connection.
    pub what: String,
    /// Whether the host exceeded its memory limit: that is the endpoint's fault, not the lab's.
    pub is_memory: bool,
}

/// The byte streams of a started command. Drop closes its standard input, but does not kill it.
pub trait Stream: Send {
    /// The next bytes of standard output, or the command's end.
    fn read(&mut self, deadline: Instant) -> Piece;

    /// Writes to standard input; returns false if it is closed or the command has ended.
    fn write(&self, bytes: Vec<u8>) -> bool;

    /// Closes standard input.
    fn close(&mut self);

    /// Standard error; `None` after the first call.
    fn stderr(&mut self) -> Option<Box<dyn Read + Send>>;
}

/// The next item of standard output.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    Bytes(Vec<u8>),
    /// The end of the command.
    Ended(Ended),
    /// The deadline passed.
    Deadline,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// With this exit status; above 128: by the signal of that number minus 128.
    Code(i32),
    /// Unknown, because the connection or the host was lost first; with the reason.
    Lost(String),
}

impl Ended {
    /// The end as a phrase; `verb` precedes an exit status.
    #[must_use]
    pub fn phrase(&self, verb: &str) -> String {
        match self {
            Self::Code(code) => format!("{verb} with exit status {code}"),
            Self::Lost(why) => format!("was lost: {why}"),
        }
    }
}

/// Standard error of a command. It is read as it comes, so that a command that writes much of it goes on; only its
/// beginning is kept.
pub struct Complaints(Option<JoinHandle<Vec<u8>>>);

/// The part of standard error that is kept, in bytes.
const KEPT: usize = 64 * 1024;

impl Complaints {
    /// Reads standard error from now on.
    #[must_use]
    pub fn of(stderr: Option<Box<dyn Read + Send>>) -> Self {
        Self(stderr.map(|mut stderr| {
            thread::spawn(move || {
                let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
                loop {
                    match stderr.read(&mut buffer) {
                        Ok(count @ 1..) => kept.extend(&buffer[..count.min(KEPT - kept.len())]),
                        Err(error) if error.kind() == ErrorKind::Interrupted => {}
                        Ok(0) | Err(_) => return kept,
                    }
                }
            })
        }))
    }

    /// What was written, once the command has closed standard error.
    pub fn words(&mut self) -> String {
        let kept = self.0.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        String::from_utf8_lossy(&kept).trim().to_owned()
    }
}
