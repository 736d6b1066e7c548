//! A short command of the agent.

use std::io::Read;
use std::time::Instant;

use crate::remote::{Ended, Piece, Remote, Stream, words};
use wirelab_lab::LabError;

/// A running command.
pub struct Call {
    what: String,
    stream: Box<dyn Stream>,
    stderr: Option<Box<dyn Read + Send>>,
    said: Vec<u8>,
}

impl Call {
    /// Starts a command with this input.
    ///
    /// # Errors
    /// As for [`Remote::run`].
    pub fn start(remote: &dyn Remote, command: &[&str], input: Vec<u8>) -> Result<Self, LabError> {
        let what = format!("`{}` in {}", command.join(" "), remote.name());
        Ok(Self::over(remote.run(command)?, what, input))
    }

    /// The call of a command that runs already; `what` names it in messages.
    #[must_use]
    pub fn over(mut stream: Box<dyn Stream>, what: String, input: Vec<u8>) -> Self {
        let stderr = stream.stderr();
        if !input.is_empty() {
            stream.write(input);
        }
        stream.close();
        Self { what, stream, stderr, said: Vec::new() }
    }

    /// Waits for the command's end and returns its standard output; `None` at the deadline.
    ///
    /// # Errors
    /// If the command failed.
    pub fn answer(&mut self, deadline: Instant) -> Result<Option<Vec<u8>>, LabError> {
        loop {
            match self.stream.read(deadline) {
                Piece::Bytes(bytes) => self.said.extend(bytes),
                Piece::Deadline => return Ok(None),
                Piece::Ended(Ended::Code(0)) => return Ok(Some(std::mem::take(&mut self.said))),
                Piece::Ended(ended) => {
                    let (how, words) = (ended.phrase("failed"), words(&mut self.stderr));
                    return Err(LabError::process(format!("{} {how}: {words}", self.what)));
                }
            }
        }
    }
}

/// Runs a command to its end and returns its standard output.
///
/// # Errors
/// If the command cannot be started, fails, or runs past the deadline.
pub fn output(remote: &dyn Remote, command: &[&str], input: Vec<u8>, deadline: Instant) -> Result<Vec<u8>, LabError> {
    let mut call = Call::start(remote, command, input)?;
    call.answer(deadline)?.ok_or_else(|| LabError::process(format!("{} did not end in time", call.what)))
}
