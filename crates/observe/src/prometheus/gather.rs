//! Asks the endpoints whose sockets are in a folder; of those that have ended, reads what they left.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use wirelab_model::exposition::{Exposed, Exposition};

/// How long an endpoint may take to answer: one that is stopped does not hold up the others for longer.
const PATIENCE: Duration = Duration::from_millis(500);

/// The longest answer that is read.
const LONGEST: u64 = 1 << 20;

/// What all of them tell, in the order of their sockets' names. One that tells nothing is left out: it is about to begin, or was killed.
pub(super) fn gather(folder: &Path) -> Vec<Exposed> {
    // Through a descriptor, because the address of a socket has room for a hundred letters only.
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
    sockets.iter().filter_map(|socket| told(socket).or_else(|| left(socket))).collect()
}

fn told(socket: &Path) -> Option<Exposed> {
    let mut text = Vec::new();
    let mut ask = || -> io::Result<()> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.take(LONGEST).read_to_end(&mut text).map(drop)
    };
    ask().ok()?;
    serde_json::from_slice(&text).ok()
}

fn left(socket: &Path) -> Option<Exposed> {
    let exposition = Exposition { socket: socket.to_owned(), labels: Default::default() };
    serde_json::from_slice(&fs::read(exposition.last()).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn told(requests: u64) -> String {
        serde_json::to_string(&Exposed { requests, ..Exposed::default() }).unwrap()
    }

    #[test]
    fn those_that_live_are_asked_and_those_that_ended_left_their_last_words() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let listener = UnixListener::bind(path("0-client0.sock")).unwrap();
        let answering = std::thread::spawn(move || {
            listener.incoming().take(1).for_each(|stream| stream.unwrap().write_all(told(1).as_bytes()).unwrap());
        });
        // It was killed: nobody listens, and nothing was left.
        drop(UnixListener::bind(path("0-server0.sock")).unwrap());
        // It ended between the listing and the question.
        drop(UnixListener::bind(path("0-server1.sock")).unwrap());
        fs::write(path("0-server1.sock.last"), told(2)).unwrap();
        fs::write(path("1-server0.sock.last"), told(3)).unwrap();
        fs::write(path("1-server0.sock.last.new"), "{").unwrap();
        let requests: Vec<_> = gather(folder.path()).iter().map(|exposed| exposed.requests).collect();
        assert_eq!(requests, [1, 2, 3]);
        answering.join().unwrap();
        assert!(gather(&path("nowhere")).is_empty());
    }
}
