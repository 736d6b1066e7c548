//! The threads of a null server over UDP, and their end.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use crate::refusal::Refusal;
use crate::server::Stop;

/// Running threads.
pub(super) struct Threads {
    running: UnixStream,
    stopped: Arc<UnixStream>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    pub fn new() -> Result<Self, Refusal> {
        let (running, stopped) = UnixStream::pair().map_err(failed)?;
        Ok(Self { running, stopped: Arc::new(stopped), threads: Vec::new() })
    }

    /// A stream that ends when the threads have to stop.
    pub fn stopped(&self) -> Arc<UnixStream> {
        Arc::clone(&self.stopped)
    }

    pub fn start(&mut self, run: impl FnOnce() + Send + 'static) -> Result<(), Refusal> {
        let name = format!("null-{}", self.threads.len());
        self.threads.push(thread::Builder::new().name(name).spawn(run).map_err(failed)?);
        Ok(())
    }

    /// Waits for the stop, and ends the threads.
    pub async fn run(self, mut stop: Stop) {
        stop.asked().await;
        drop(self.running);
        for thread in self.threads {
            // A thread that panicked has said so on standard error.
            let _ = thread.join();
        }
    }
}

/// The server could not be started.
pub(super) fn failed(error: io::Error) -> Refusal {
    Refusal::failed(format!("starting the null server: {error}"))
}
