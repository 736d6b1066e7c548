//! Lines on standard error, which wirelab keeps as the log of the process.

use std::fmt::Display;
use std::io::{Write, stderr};

/// Writes a line. Errors are ignored: an endpoint does its work without a reader of its log, too.
pub(crate) fn write_line(line: impl Display) {
    let _ = writeln!(stderr().lock(), "{line}");
}
