//! Lines on standard error, above the progress bar, without characters that control the terminal.

use std::fmt::Display;
use std::io::{Write, stderr};
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, WeakProgressBar};
use wirelab_model::visible::visible;

/// The progress bar on the terminal, if one is shown.
static BAR: Mutex<Option<WeakProgressBar>> = Mutex::new(None);

/// Makes all further lines appear above this bar, as long as it exists.
pub fn keep_below(bar: &ProgressBar) {
    *BAR.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar.downgrade());
}

/// Writes a line to standard error. Errors are ignored: a full disk or a closed pipe must not end a run.
pub fn write_line(line: impl Display) {
    write(&format!("{line}\n"));
}

/// Writes whole lines to standard error; errors are ignored as in [`write_line`].
pub fn write(lines: &str) {
    let lines = visible(lines);
    let bar = BAR.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(WeakProgressBar::upgrade);
    let written = || {
        let _ = stderr().lock().write_all(lines.as_bytes());
    };
    match bar {
        Some(bar) if !bar.is_finished() => bar.suspend(written),
        _ => written(),
    }
}
