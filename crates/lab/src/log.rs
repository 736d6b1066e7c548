//! Logs of endpoints: reads standard error continuously, so that endpoints never block, and keeps a bounded part.
//!
//! Each line of the file begins with the time at which its first byte was read, in the format of wirelab's own log, so
//! that the logs of several processes can be read in order.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;

use crate::LabError;

/// Maximum size of a log, in bytes; the rest is read and discarded.
pub const LARGEST_LOG: usize = 1024 * 1024;

/// Size of the tail that is kept for messages, in bytes.
const LAST_WORDS: usize = 2048;

/// The log of a process's standard error.
#[derive(Debug)]
pub struct Log {
    tail: Arc<Mutex<VecDeque<u8>>>,
    /// Disconnects at the end of the stream.
    ended: Receiver<()>,
}

impl Log {
    /// Creates the log file, if a path is given.
    ///
    /// # Errors
    /// If the file cannot be created.
    pub fn create(path: Option<&Path>) -> Result<Option<File>, LabError> {
        let Some(path) = path else { return Ok(None) };
        File::create(path).map(Some).map_err(|error| {
            LabError::file(format!("cannot create the log {}", path.display()))
                .because(error)
                .remedy("is the disk full or read-only?")
        })
    }

    /// Starts a thread that reads until the end of the stream.
    ///
    /// # Errors
    /// If the system refuses the thread.
    pub fn follow(stderr: impl Read + Send + 'static, file: Option<File>) -> Result<Self, LabError> {
        let tail = Arc::new(Mutex::new(VecDeque::new()));
        let (running, ended) = channel();
        let thread_tail = Arc::clone(&tail);
        let read = move || {
            let _running = running;
            copy(stderr, file, &thread_tail);
        };
        thread::Builder::new().spawn(read).map_err(|error| LabError::thread("that reads standard error", error))?;
        Ok(Self { tail, ended })
    }

    /// The tail of the log. Waits up to `timeout` for the end of the stream, because a surviving descendant may hold
    /// it open.
    pub fn last_words(&self, timeout: Duration) -> String {
        let _ = self.ended.recv_timeout(timeout);
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).trim_end().to_owned()
    }
}

fn copy(mut from: impl Read, mut file: Option<impl Write>, tail: &Mutex<VecDeque<u8>>) {
    let mut buffer = [0; 8192];
    let mut left = LARGEST_LOG;
    let mut within_line = false;
    loop {
        let bytes = match from.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => &buffer[..count],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        append_tail(tail, bytes);
        let Some(sink) = &mut file else { continue };
        let lines = stamped(bytes, &mut within_line);
        let kept = lines.len().min(left);
        left -= kept;
        let mut result = sink.write_all(&lines[..kept]);
        let cut = kept < lines.len();
        if cut {
            result = result.and_then(|()| writeln!(sink, "\n[wirelab cut the log here, after {LARGEST_LOG} bytes]"));
        }
        if let Err(error) = &result {
            append_tail(tail, format!("\n[wirelab could not write the log: {error}]\n").as_bytes());
        }
        if cut || result.is_err() {
            file = None;
        }
    }
}

/// Adds the current time to the beginning of each line. `within_line` tells whether the bytes continue a line.
fn stamped(bytes: &[u8], within_line: &mut bool) -> Vec<u8> {
    let stamp = stamp();
    let mut lines = Vec::with_capacity(bytes.len() + 2 * stamp.len());
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !*within_line {
            lines.extend(stamp.as_bytes());
            lines.push(b' ');
        }
        lines.extend(line);
        *within_line = !line.ends_with(b"\n");
    }
    lines
}

/// The current time with microseconds, such as `2026-11-23T17:40:00.123456Z`. Texts of later times sort after it.
fn stamp() -> String {
    Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

fn append_tail(tail: &Mutex<VecDeque<u8>>, bytes: &[u8]) {
    let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
    tail.extend(bytes);
    let surplus = tail.len().saturating_sub(LAST_WORDS);
    tail.drain(..surplus);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_cut_at_its_bound_with_a_mark_and_its_tail_is_kept() {
        let mut written = Vec::new();
        let tail = Mutex::new(VecDeque::new());
        let flood = io::repeat(b'x').take(3 * LARGEST_LOG as u64).chain(&b"the end"[..]);
        copy(flood, Some(&mut written), &tail);
        let mark = String::from_utf8_lossy(&written[LARGEST_LOG..]).into_owned();
        assert_eq!(mark, "\n[wirelab cut the log here, after 1048576 bytes]\n");
        let tail: Vec<u8> = tail.into_inner().unwrap().into_iter().collect();
        assert!(tail.len() == LAST_WORDS && tail.ends_with(b"the end"));
    }

    #[test]
    fn each_line_of_a_log_has_one_time_however_its_bytes_arrive() {
        let mut within_line = false;
        let parts = [&b"one\ntw"[..], b"o\n", b"three"].map(|part| stamped(part, &mut within_line));
        let text = String::from_utf8(parts.concat()).unwrap();
        let lines: Vec<_> = text.lines().map(|line| line.split_once(' ').unwrap()).collect();
        assert_eq!(lines.iter().map(|(_, line)| *line).collect::<Vec<_>>(), ["one", "two", "three"]);
        assert!(lines.iter().all(|(stamp, _)| stamp.len() == 27 && stamp.ends_with('Z')), "{text}");
        assert!(lines.is_sorted(), "{text}");
    }
}
