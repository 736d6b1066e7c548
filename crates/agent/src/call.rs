//! A short command of the agent.

use std::time::Instant;

use crate::remote::{Complaints, Ended, Piece, Remote, Stream};
use wirelab_lab::LabError;

/// The longest standard output of a command in bytes, unless it has a limit of its own: more than the results of any
/// trial.
const MOST: usize = 1 << 30;

/// A running command.
pub struct Call {
    what: String,
    stream: Box<dyn Stream>,
    complaints: Complaints,
    said: Vec<u8>,
    most: usize,
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
        let complaints = Complaints::of(stream.stderr());
        if !input.is_empty() {
            stream.write(input);
        }
        stream.close();
        Self { what, stream, complaints, said: Vec::new(), most: MOST }
    }

    /// The same call; it fails if the command says more than this number of bytes.
    #[must_use]
    pub fn at_most(self, bytes: usize) -> Self {
        Self { most: bytes, ..self }
    }

    /// Waits for the command's end and returns its standard output; `None` at the deadline.
    ///
    /// # Errors
    /// If the command failed, or said too much.
    pub fn answer(&mut self, deadline: Instant) -> Result<Option<Vec<u8>>, LabError> {
        loop {
            match self.stream.read(deadline) {
                Piece::Bytes(bytes) if self.said.len() + bytes.len() <= self.most => self.said.extend(bytes),
                Piece::Bytes(_) => {
                    return Err(LabError::process(format!("{} said more than {} bytes", self.what, self.most)));
                }
                Piece::Deadline => return Ok(None),
                Piece::Ended(Ended::Code(0)) => return Ok(Some(std::mem::take(&mut self.said))),
                Piece::Ended(ended) => {
                    let (how, words) = (ended.phrase("failed"), self.complaints.words());
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
