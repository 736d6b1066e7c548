//! Lines on standard error.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes a line to standard error. Errors are ignored: a full disk or a closed pipe must not end a run.
pub fn write_line(line: impl Display) {
    let _ = writeln!(stderr().lock(), "{line}");
}
