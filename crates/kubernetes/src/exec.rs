//! A program in a pod, started through the API server, with its three streams.

use std::collections::VecDeque;
use std::io::{self, Read};
use std::sync::Arc;
use std::sync::mpsc as threads;
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::Api;
use kube::api::{AttachParams, AttachedProcess};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::sync::{mpsc, oneshot};
use tokio::task::AbortHandle;

use crate::cluster::Cluster;
use crate::names::CONTAINER;
use wirelab_agent::{Ended, Piece, Stream};
use wirelab_lab::LabError;

/// Chunks of standard output that wait for the reader; beyond these the program blocks.
const WAITING: usize = 64;

/// Buffer size in bytes, between the connection and its reader.
const BUFFER: usize = 64 * 1024;

/// Time-out of the exit status after the end of the streams.
const STATUS: Duration = Duration::from_secs(5);

/// A started program. Dropping it closes the program's standard input, but does not kill the program.
pub(crate) struct Exec {
    cluster: Arc<Cluster>,
    stdin: Option<mpsc::UnboundedSender<Vec<u8>>>,
    stdout: mpsc::Receiver<Vec<u8>>,
    stderr: Option<Chunks>,
    ended: Option<oneshot::Receiver<Ended>>,
    end: Option<Ended>,
    task: AbortHandle,
}

impl Exec {
    /// Starts a program in a pod.
    ///
    /// # Errors
    /// If the API server refuses, or the pod does not run.
    pub(crate) fn start(
        cluster: &Arc<Cluster>,
        pods: &Api<Pod>,
        pod: &str,
        command: &[&str],
    ) -> Result<Self, LabError> {
        let parameters = AttachParams::default()
            .container(CONTAINER)
            .stdin(true)
            .stdout(true)
            .stderr(true)
            .max_stdin_buf_size(BUFFER)
            .max_stdout_buf_size(BUFFER)
            .max_stderr_buf_size(BUFFER);
        let attempt = format!("starting `{}` in the pod {pod}", command.join(" "));
        let attached = cluster.ask(&attempt, pods.exec(pod, command.iter().copied(), &parameters))?;
        let (stdin, input) = mpsc::unbounded_channel();
        let (output, stdout) = mpsc::channel(WAITING);
        let (complaints, stderr) = threads::channel();
        let (end, ended) = oneshot::channel();
        let task = cluster.runtime.spawn(async move {
            let ended = pump(attached, input, output, complaints).await;
            // The receiver may have been dropped.
            let _ = end.send(ended);
        });
        Ok(Self {
            cluster: Arc::clone(cluster),
            stdin: Some(stdin),
            stdout,
            stderr: Some(Chunks { pieces: stderr, rest: VecDeque::new() }),
            ended: Some(ended),
            end: None,
            task: task.abort_handle(),
        })
    }

    fn status(&mut self) -> Ended {
        let lost = || Ended::Lost("the API server did not say how it ended".to_owned());
        let Some(ended) = self.ended.take() else { return lost() };
        let ended = self.cluster.runtime.block_on(async { tokio::time::timeout(STATUS, ended).await });
        ended.ok().and_then(Result::ok).unwrap_or_else(lost)
    }
}

impl Stream for Exec {
    fn stderr(&mut self) -> Option<Box<dyn Read + Send>> {
        self.stderr.take().map(|stderr| Box::new(stderr) as Box<dyn Read + Send>)
    }

    fn write(&self, bytes: Vec<u8>) -> bool {
        self.stdin.as_ref().is_some_and(|stdin| stdin.send(bytes).is_ok())
    }

    fn close(&mut self) {
        self.stdin = None;
    }

    fn read(&mut self, deadline: Instant) -> Piece {
        if let Some(end) = &self.end {
            return Piece::Ended(end.clone());
        }
        let stdout = &mut self.stdout;
        let piece =
            self.cluster.runtime.block_on(async { tokio::time::timeout_at(deadline.into(), stdout.recv()).await });
        match piece {
            Err(_) => Piece::Deadline,
            Ok(Some(bytes)) => Piece::Bytes(bytes),
            Ok(None) => {
                let end = self.status();
                self.end = Some(end.clone());
                Piece::Ended(end)
            }
        }
    }
}

impl Drop for Exec {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Moves bytes between the connection and the channels until the program has ended.
async fn pump(
    mut attached: AttachedProcess,
    mut input: mpsc::UnboundedReceiver<Vec<u8>>,
    output: mpsc::Sender<Vec<u8>>,
    complaints: threads::Sender<Vec<u8>>,
) -> Ended {
    let status = attached.take_status();
    let stdin = attached.stdin();
    let feeding = tokio::spawn(async move {
        let Some(mut stdin) = stdin else { return };
        while let Some(bytes) = input.recv().await {
            if stdin.write_all(&bytes).await.is_err() {
                return;
            }
        }
        // Dropping `stdin` here tells the program that its input has ended.
    });
    let (stdout, stderr) = (attached.stdout(), attached.stderr());
    let reading = async {
        if let Some(mut stdout) = stdout {
            while let Some(bytes) = piece(&mut stdout).await {
                // Without a reader the bytes are dropped, so that the program can end.
                let _ = output.send(bytes).await;
            }
        }
    };
    let complaining = async {
        if let Some(mut stderr) = stderr {
            while let Some(bytes) = piece(&mut stderr).await {
                let _ = complaints.send(bytes);
            }
        }
    };
    let streams = async { tokio::join!(reading, complaining) };
    let connection = attached.join();
    tokio::pin!(streams, connection);
    let closed = tokio::select! {
        _ = &mut streams => connection.await,
        closed = &mut connection => {
            // The streams of a broken connection never end.
            if closed.is_ok() {
                streams.await;
            }
            closed
        }
    };
    feeding.abort();
    let status = match status {
        Some(status) => status.await,
        None => None,
    };
    match (status, closed) {
        (Some(status), _) => ended(&status),
        (None, Ok(())) => Ended::Lost("the connection through the API server was closed".to_owned()),
        (None, Err(error)) => Ended::Lost(error.to_string()),
    }
}

async fn piece(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut buffer = vec![0; BUFFER];
    let count = from.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
    buffer.truncate(count);
    Some(buffer)
}

/// The end of a program, from the status that the API server sends.
fn ended(status: &Status) -> Ended {
    if status.status.as_deref() == Some("Success") {
        return Ended::Code(0);
    }
    let causes = status.details.iter().flat_map(|details| details.causes.iter().flatten());
    let code = causes
        .filter(|cause| cause.reason.as_deref() == Some("ExitCode"))
        .find_map(|cause| cause.message.as_deref()?.parse().ok());
    match code {
        Some(code) if status.reason.as_deref() == Some("NonZeroExitCode") => Ended::Code(code),
        _ => Ended::Lost(status.message.clone().unwrap_or_else(|| "the API server gave no reason".to_owned())),
    }
}

/// Standard error as a blocking reader.
struct Chunks {
    pieces: threads::Receiver<Vec<u8>>,
    rest: VecDeque<u8>,
}

impl Read for Chunks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.pieces.recv() {
                Ok(piece) => self.rest.extend(piece),
                Err(threads::RecvError) => return Ok(0),
            }
        }
        self.rest.read(buffer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_end_of_a_program_is_read_from_the_status_that_the_api_server_sends() {
        let of = |status| ended(&serde_json::from_value(status).unwrap());
        assert_eq!(of(json!({ "metadata": {}, "status": "Success" })), Ended::Code(0));
        let failure = |reason: &str, message: &str, causes: serde_json::Value| json!({ "metadata": {}, "status": "Failure", "reason": reason, "message": message, "details": { "causes": causes } });
        let causes = json!([{ "reason": "ExitCode", "message": "127" }]);
        let text = "command terminated with non-zero exit code: 127";
        assert_eq!(of(failure("NonZeroExitCode", text, causes)), Ended::Code(127));
        let gone = failure("InternalError", "container not found (\"wirelab\")", json!([{ "message": "x" }]));
        assert_eq!(of(gone), Ended::Lost("container not found (\"wirelab\")".to_owned()));
    }

    #[test]
    fn standard_error_is_read_piece_by_piece_and_ends_with_its_sender() {
        let (sender, pieces) = threads::channel();
        for piece in [&b"first "[..], b"", b"second"] {
            sender.send(piece.to_vec()).unwrap();
        }
        drop(sender);
        let mut words = String::new();
        Chunks { pieces, rest: VecDeque::new() }.read_to_string(&mut words).unwrap();
        assert_eq!(words, "first second");
    }
}
