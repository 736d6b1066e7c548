//! The client of an agent that observes endpoints.

use std::time::{Duration, Instant};

use wirelab_lab::{LabError, Role};
use wirelab_model::metric::Values;

use crate::remote::{Complaints, Piece, Remote, Stream};
use crate::there::part;

/// Time-out of an answer.
pub const ANSWERING: Duration = Duration::from_secs(20);

/// The longest answer in bytes.
const ANSWER: usize = 64 << 20;

/// An agent that observes endpoints from their host.
pub struct Watcher {
    host: String,
    stream: Box<dyn Stream>,
    complaints: Complaints,
    said: Vec<u8>,
    /// Why the agent's values are void.
    failed: Option<LabError>,
}

impl Watcher {
    /// Starts an observing command of the agent, for endpoints with these roles and specs.
    ///
    /// # Errors
    /// As for [`Remote::run`].
    pub fn start<'a>(
        remote: &dyn Remote,
        command: &[&'a str],
        endpoints: impl Iterator<Item = (Role, &'a str)>,
    ) -> Result<Self, LabError> {
        let mut command = command.to_vec();
        for (role, spec) in endpoints {
            command.extend([part(role), spec]);
        }
        let mut stream = remote.run(&command)?;
        let complaints = Complaints::of(stream.stderr());
        Ok(Self { host: remote.name().to_owned(), stream, complaints, said: Vec::new(), failed: None })
    }

    /// Sends a line.
    pub fn tell(&self, line: &str) {
        // An agent that no longer reads has ended, which the next read reports.
        self.stream.write(format!("{line}\n").into_bytes());
    }

    /// Waits for the acknowledgement of a line. Without it, the agent gives no values.
    pub fn acknowledge(&mut self, deadline: Instant) {
        if self.failed.is_none() {
            self.failed = self.hear(deadline).err();
        }
    }

    /// The answer to the line `values`.
    ///
    /// # Errors
    /// If the agent failed.
    pub fn values(&mut self, deadline: Instant) -> Result<Values, LabError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        let text = self.hear(deadline)?;
        serde_json::from_str(&text)
            .map_err(|error| LabError::process(format!("the agent in {} is not understood", self.host)).because(error))
    }

    /// The agent's next line.
    fn hear(&mut self, deadline: Instant) -> Result<String, LabError> {
        let host = &self.host;
        loop {
            if let Some(end) = self.said.iter().position(|byte| *byte == b'\n') {
                let line: Vec<_> = self.said.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            match self.stream.read(deadline) {
                Piece::Bytes(bytes) if self.said.len() + bytes.len() <= ANSWER => self.said.extend(bytes),
                Piece::Bytes(_) => {
                    return Err(LabError::process(format!(
                        "the agent that observes in {host} said a line of more than {ANSWER} bytes"
                    )));
                }
                Piece::Deadline => {
                    return Err(LabError::process(format!(
                        "the agent that observes in {host} said nothing for {ANSWERING:?}"
                    )));
                }
                Piece::Ended(ended) => {
                    let (how, words) = (ended.phrase("ended"), self.complaints.words());
                    return Err(LabError::process(format!("the agent that observes in {host} {how}: {words}")));
                }
            }
        }
    }
}
