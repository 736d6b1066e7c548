//! The open files that every command needs before it does anything.

use std::io;
use std::os::fd::AsFd;

use crate::failure::{Failure, Result};

/// The files that an asynchronous runtime opens at its start; tokio panics if it cannot.
const LEAST: usize = 5;

/// Tries to open them.
///
/// # Errors
/// If this process may open fewer files; the message has the remedy.
pub fn check() -> Result {
    let any = io::stdin();
    let files: io::Result<Vec<_>> = (0..LEAST).map(|_| any.as_fd().try_clone_to_owned()).collect();
    files.map(drop).map_err(|error| {
        Failure::failed(format!(
            "cannot open {LEAST} more files: {error}; raise the limit of open files: `ulimit -n 1024`"
        ))
    })
}
