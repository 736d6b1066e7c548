//! Exports counters at the socket of the spec's `exposition`. Without a connection its thread sleeps in the kernel.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use wirelab_contract::exposition::{Exposed, Exposition};

use crate::refusal::Refusal;
use crate::stderr::write_line;

/// Reads the counters.
type Counts = Arc<dyn Fn() -> Exposed + Send + Sync>;

/// An open socket. Dropping it writes the last counters to a file.
pub(crate) struct Exporter {
    exposition: Exposition,
    counts: Counts,
    ends: Arc<AtomicBool>,
}

impl Exporter {
    /// Starts to listen. Calls `counts` for each connection, and adds the labels.
    pub fn start(
        exposition: &Exposition,
        counts: impl Fn() -> Exposed + Send + Sync + 'static,
    ) -> Result<Self, Refusal> {
        let failed = |error: io::Error| {
            Refusal::failed(format!("listening at the socket {}: {error}", exposition.socket.display()))
        };
        // Files at these paths are from the previous trial.
        for old in [&exposition.socket, &exposition.last()] {
            fs::remove_file(old).or_else(absent).map_err(failed)?;
        }
        let listener = at(&exposition.socket, |path| UnixListener::bind(path)).map_err(failed)?;
        let labels = exposition.labels.clone();
        let counts: Counts = Arc::new(move || Exposed { labels: labels.clone(), ..counts() });
        let ends = Arc::new(AtomicBool::new(false));
        let exporter = Self { exposition: exposition.clone(), counts: Arc::clone(&counts), ends: Arc::clone(&ends) };
        let tell = move || {
            for asking in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                // A client that disconnects early is ignored.
                let _ = asking.and_then(|mut stream| stream.write_all(&text(&counts())));
            }
        };
        std::thread::Builder::new().name("exporter".to_owned()).spawn(tell).map_err(failed)?;
        Ok(exporter)
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        // Wakes the thread, which then releases the counters.
        let _ = at(&self.exposition.socket, |path| UnixStream::connect(path));
        let counts = (self.counts)();
        // The end of the process ends its connections.
        let last = Exposed { connections: counts.connections.map(|_| 0), ..counts };
        let left = leave(&self.exposition.last(), &text(&last));
        if let Err(error) = left.and_then(|()| fs::remove_file(&self.exposition.socket)) {
            let socket = self.exposition.socket.display();
            write_line(format_args!("writing the last counters to {socket}: {error}"));
        }
    }
}

fn text(counts: &Exposed) -> Vec<u8> {
    serde_json::to_vec(counts).expect("counts always serialise")
}

/// Writes the file atomically, because another process may read it.
fn leave(path: &Path, text: &[u8]) -> io::Result<()> {
    let unfinished = path.with_added_extension("new");
    fs::write(&unfinished, text)?;
    fs::rename(&unfinished, path)
}

fn absent(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Calls `work` with a short path of the socket, through a descriptor of its folder: the real path may be longer than a
/// socket address.
fn at<T>(socket: &Path, work: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidFilename.into());
    };
    let folder = File::open(folder)?;
    work(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::sync::atomic::AtomicU64;

    use super::*;

    #[test]
    fn each_connection_gets_the_counters_and_the_last_ones_stay_for_any_length_of_path() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a".repeat(200));
        fs::create_dir(&deep).unwrap();
        let labels = [("role".to_owned(), "server".to_owned())].into();
        let exposition = Exposition { socket: deep.join("server0.sock"), labels };
        let answered = Arc::new(AtomicU64::new(3));
        let counter = Arc::clone(&answered);
        // A second exporter replaces the files of the first.
        for _ in 0..2 {
            let counter = Arc::clone(&counter);
            let counts = move || Exposed {
                requests: counter.load(Ordering::Relaxed),
                connections: Some(2),
                ..Exposed::default()
            };
            let exporter = Exporter::start(&exposition, counts).unwrap();
            let ask = || {
                let mut said = String::new();
                let mut stream = at(&exposition.socket, |path| UnixStream::connect(path)).unwrap();
                stream.read_to_string(&mut said).unwrap();
                serde_json::from_str::<Exposed>(&said).unwrap()
            };
            let told = ask();
            assert_eq!((told.requests, told.connections), (answered.load(Ordering::Relaxed), Some(2)));
            assert_eq!(told.labels, exposition.labels);
            answered.fetch_add(1, Ordering::Relaxed);
            assert_eq!(ask().requests, told.requests + 1);
            drop(exporter);
            assert!(!exposition.socket.exists());
            let last: Exposed = serde_json::from_slice(&fs::read(exposition.last()).unwrap()).unwrap();
            assert_eq!((last.requests, last.connections), (told.requests + 1, Some(0)));
        }
    }

    #[test]
    fn the_error_names_a_socket_that_cannot_be_created() {
        let exposition = Exposition { socket: "/nowhere/at/all.sock".into(), labels: Default::default() };
        match Exporter::start(&exposition, Exposed::default) {
            Err(Refusal::Failed(failure)) => assert!(failure.message.contains("/nowhere/at/all.sock"), "{failure:?}"),
            Err(other) => panic!("{other:?}"),
            Ok(_) => panic!("the socket does not exist"),
        }
    }
}
