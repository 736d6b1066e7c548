//! Results of tests beside passed and failed: skips and retries, one JSON line each, in the file
//! `WIRELAB_TEST_RECORDS`.

use std::cell::RefCell;
use std::env;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::Location;
use std::thread;

use serde::Serialize;

#[derive(Debug, Serialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(crate) enum Record {
    Skip {
        test: String,
        code: String,
        reason: String,
        /// Whether only a part of the test is skipped.
        is_part: bool,
        /// Whether the harness counts the test as ignored. Otherwise it counts it as passed.
        is_ignored: bool,
    },
    Retry {
        test: String,
        attempt: u32,
        of: u32,
        reason: String,
    },
    Seconds {
        test: String,
        seconds: f64,
    },
}

/// The running test of the harness `physics`.
struct Current {
    name: String,
    is_skipped: bool,
}

thread_local! {
    /// The test that this thread runs.
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// Sets the name of the test that this thread now runs.
pub(crate) fn begin(name: &str) {
    CURRENT.set(Some(Current { name: name.to_owned(), is_skipped: false }));
}

/// Whether the test that this thread ran was skipped as a whole.
pub(crate) fn end() -> bool {
    CURRENT.take().is_some_and(|current| current.is_skipped)
}

/// Marks the current test as skipped as a whole; `false` under libtest, which has no such result.
pub(crate) fn note_whole_skip() -> bool {
    CURRENT.with_borrow_mut(|current| current.as_mut().map(|current| current.is_skipped = true).is_some())
}

/// The name of the running test. libtest names threads after tests; with a single thread it does not, and the place of
/// the call is used instead.
pub(crate) fn test_name(place: &Location<'_>) -> String {
    if let Some(name) = CURRENT.with_borrow(|current| current.as_ref().map(|current| current.name.clone())) {
        return name;
    }
    let thread = thread::current();
    match thread.name() {
        Some(name) if name != "main" => name.to_owned(),
        _ => format!("{}:{}", place.file(), place.line()),
    }
}

/// Appends a record, and prints it past the capture of libtest.
pub(crate) fn add(record: &Record) {
    let mut stderr = std::io::stderr().lock();
    // A record that cannot be printed is still in the file.
    let _ = match record {
        Record::Skip { test, code, reason, .. } => writeln!(stderr, "SKIPPED {test} ({code}): {reason}"),
        Record::Retry { test, attempt, of, reason } => {
            writeln!(stderr, "RETRIED {test} (attempt {attempt} of {of} failed): {reason}")
        }
        Record::Seconds { .. } => Ok(()),
    };
    let Some(path) = env::var_os("WIRELAB_TEST_RECORDS") else { return };
    let line = serde_json::to_string(record).expect("records are plain data") + "\n";
    let mut file = OpenOptions::new().create(true).append(true).open(&path).expect("the folder of the records exists");
    // One write, so that lines of parallel programs do not mix.
    file.write_all(line.as_bytes()).expect("the records can be written");
}
