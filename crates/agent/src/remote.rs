//! Access to a host, which a lab implements for its transport.

use std::io::Read;
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

/// The unread rest of a command's standard error; after an error, the part that was read.
pub(crate) fn words(stderr: &mut Option<Box<dyn Read + Send>>) -> String {
    let mut words = String::new();
    if let Some(mut stderr) = stderr.take() {
        let _ = stderr.read_to_string(&mut words);
    }
    words.trim().to_owned()
}
