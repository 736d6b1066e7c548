//! Collects the endpoints' numbers: running endpoints through their sockets, ended ones from the files that they left.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wirelab_model::exposition::{Exposed, Exposition};

/// Read time-out per endpoint, so a stopped endpoint delays the others by at most this long.
const READ_TIMEOUT: Duration = Duration::from_millis(500);

/// The longest answer that is read, in bytes.
const LONGEST: u64 = 1 << 20;

/// The numbers of all endpoints in a folder, in the order of their sockets' names. An endpoint without numbers is left
/// out: it is starting, or was killed.
pub(super) fn gather(folder: &Path) -> Vec<Exposed> {
    // Addressed through a descriptor, because a socket's address holds only about a hundred bytes.
    let Ok(open) = File::open(folder) else { return Vec::new() };
    let folder = Path::new("/proc/self/fd").join(open.as_raw_fd().to_string());
    let mut sockets: Vec<PathBuf> = fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter_map(|path| match path.extension()?.to_str()? {
            "sock" => Some(path),
            "last" => Some(path.with_extension("")),
            _ => None,
        })
        .collect();
    sockets.sort();
    sockets.dedup();
    sockets.iter().filter_map(|socket| current(socket).or_else(|| last(socket))).collect()
}

fn current(socket: &Path) -> Option<Exposed> {
    let mut text = Vec::new();
    let mut ask = || -> io::Result<()> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(READ_TIMEOUT))?;
        stream.take(LONGEST).read_to_end(&mut text).map(drop)
    };
    ask().ok()?;
    serde_json::from_slice(&text).ok()
}

fn last(socket: &Path) -> Option<Exposed> {
    let exposition = Exposition { socket: socket.to_owned(), labels: Default::default() };
    serde_json::from_slice(&fs::read(exposition.last()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn exposed(requests: u64) -> String {
        serde_json::to_string(&Exposed { requests, ..Exposed::default() }).unwrap()
    }

    #[test]
    fn running_endpoints_are_asked_and_ended_ones_left_their_last_numbers() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let listener = UnixListener::bind(path("0-client0.sock")).unwrap();
        let answering = std::thread::spawn(move || {
            listener.incoming().take(1).for_each(|stream| stream.unwrap().write_all(exposed(1).as_bytes()).unwrap());
        });
        // A killed endpoint: its socket has no listener, and it left no file.
        drop(UnixListener::bind(path("0-server0.sock")).unwrap());
        // An endpoint that ended between the listing and the question.
        drop(UnixListener::bind(path("0-server1.sock")).unwrap());
        fs::write(path("0-server1.sock.last"), exposed(2)).unwrap();
        fs::write(path("1-server0.sock.last"), exposed(3)).unwrap();
        fs::write(path("1-server0.sock.last.new"), "{").unwrap();
        let requests: Vec<_> = gather(folder.path()).iter().map(|exposed| exposed.requests).collect();
        assert_eq!(requests, [1, 2, 3]);
        answering.join().unwrap();
        assert!(gather(&path("nowhere")).is_empty());
    }
}
