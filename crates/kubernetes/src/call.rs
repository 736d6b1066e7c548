//! A short command of the agent in a pod.

use std::io::Read;
use std::sync::Arc;
use std::time::Instant;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;

use crate::cluster::Cluster;
use crate::exec::{Chunks, Ended, Exec, Piece};
use wirelab_lab::LabError;

/// A running command.
pub(crate) struct Call {
    what: String,
    exec: Exec,
    stderr: Option<Chunks>,
    said: Vec<u8>,
}

impl Call {
    /// Starts a command in a pod.
    ///
    /// # Errors
    /// If the API server refuses, or the pod does not run.
    pub(crate) fn start(
        cluster: &Arc<Cluster>,
        pods: &Api<Pod>,
        pod: &str,
        command: &[&str],
        input: Vec<u8>,
    ) -> Result<Self, LabError> {
        let what = format!("`{}` in the pod {pod}", command.join(" "));
        let mut exec = Exec::start(cluster, pods, pod, command)?;
        let stderr = exec.stderr();
        if !input.is_empty() {
            exec.write(input);
        }
        exec.close();
        Ok(Self { what, exec, stderr, said: Vec::new() })
    }

    /// Waits for the command's end and returns its standard output; `None` at the deadline.
    ///
    /// # Errors
    /// If the command failed.
    pub(crate) fn answer(&mut self, deadline: Instant) -> Result<Option<Vec<u8>>, LabError> {
        loop {
            match self.exec.read(deadline) {
                Piece::Bytes(bytes) => self.said.extend(bytes),
                Piece::Deadline => return Ok(None),
                Piece::Ended(Ended::Code(0)) => return Ok(Some(std::mem::take(&mut self.said))),
                Piece::Ended(ended) => {
                    let mut words = String::new();
                    if let Some(mut stderr) = self.stderr.take() {
                        // After an error, the part that was read is kept.
                        let _ = stderr.read_to_string(&mut words);
                    }
                    let how = match ended {
                        Ended::Code(code) => format!("failed with exit status {code}"),
                        Ended::Lost(why) => format!("was lost: {why}"),
                    };
                    return Err(LabError::cluster(format!("{} {how}: {}", self.what, words.trim())));
                }
            }
        }
    }
}

/// Runs a command in a pod to its end and returns its standard output.
///
/// # Errors
/// If the command cannot be started, fails, or runs past the deadline.
pub(crate) fn output(
    cluster: &Arc<Cluster>,
    pods: &Api<Pod>,
    pod: &str,
    command: &[&str],
    input: Vec<u8>,
    deadline: Instant,
) -> Result<Vec<u8>, LabError> {
    let mut call = Call::start(cluster, pods, pod, command, input)?;
    call.answer(deadline)?.ok_or_else(|| LabError::cluster(format!("{} did not end in time", call.what)))
}
