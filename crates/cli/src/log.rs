//! wirelab's own log: to standard error where the user asks for it, and to the folder of each run. Helper processes
//! have files of their own there.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::layer;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, registry};
use wirelab_model::nearest::did_you_mean;

use crate::args::{LogArgs, LogFormat};
use crate::failure::{Failure, Result};
use crate::stderr;

/// Environment variable with the filter of the log on standard error.
pub const VARIABLE: &str = "WIRELAB_LOG";

/// Name of the log in a run folder.
pub const FILE: &str = "log.jsonl";

/// Prefix of the targets of all events of wirelab's own crates.
const OURS: &str = "wirelab";

/// The words for levels.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

/// The log file of this process in the folder of its run.
static KEPT: Mutex<Kept> = Mutex::new(Kept::Nowhere);

/// A log file.
enum Kept {
    /// The process has no run yet.
    Nowhere,
    /// Created at the first line, so that no empty file stays.
    At(PathBuf),
    Open(File),
}

/// Starts the log of this process. `makes_run`: the command works on a run, whose folder gets a log as well.
///
/// # Errors
/// If `WIRELAB_LOG` is not a filter.
pub fn start(args: &LogArgs, makes_run: bool) -> Result {
    let shown = match chosen()? {
        None if args.verbose == 0 => None,
        None if args.verbose == 1 => Some(ours(LevelFilter::INFO)),
        None => Some(ours(LevelFilter::DEBUG)),
        filter => filter,
    };
    // Without a subscriber, an event costs one comparison.
    if shown.is_none() && !makes_run {
        return Ok(());
    }
    let shown = shown.map(|filter| match args.log_format {
        LogFormat::Text => layer().with_writer(|| Stderr).log_internal_errors(false).with_filter(filter).boxed(),
        LogFormat::Json => layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_writer(|| Stderr)
            .log_internal_errors(false)
            .with_filter(filter)
            .boxed(),
    });
    let kept = makes_run.then(|| {
        layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_writer(|| KeptLog)
            .log_internal_errors(false)
            .with_filter(ours(LevelFilter::INFO))
    });
    registry().with(shown).with(kept).init();
    Ok(())
}

/// Starts the log of a process that wirelab starts: only `WIRELAB_LOG` counts, and its standard error is in the run
/// folder already. A wrong filter was reported by the first process.
pub fn start_inside() {
    let args = LogArgs { verbose: 0, log_format: LogFormat::Text };
    let _ = start(&args, false);
}

/// Starts the log of a helper process: steps, or what `WIRELAB_LOG` selects, to the file of [`keep_at`].
pub fn start_helper() {
    let filter = chosen().ok().flatten().unwrap_or_else(|| ours(LevelFilter::INFO));
    let kept = layer().with_ansi(false).with_target(false).with_writer(|| KeptLog).log_internal_errors(false);
    registry().with(kept.with_filter(filter)).init();
}

/// The filter in `WIRELAB_LOG`.
fn chosen() -> Result<Option<Targets>> {
    match std::env::var(VARIABLE) {
        Ok(text) if !text.trim().is_empty() => filter(&text).map(Some),
        _ => Ok(None),
    }
}

/// Events of wirelab's own crates.
fn ours(level: LevelFilter) -> Targets {
    Targets::new().with_target(OURS, level)
}

/// Appends all further events of a helper process to this file.
pub fn keep_at(path: &Path) {
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Kept::At(path.to_owned());
}

/// Appends all further events to the log of this run folder.
///
/// # Errors
/// If the file cannot be opened.
pub fn keep_in(folder: &Path) -> Result {
    let path = folder.join(FILE);
    let file = File::options().create(true).append(true).open(&path);
    let file = file.map_err(|error| Failure::failed(format!("cannot open the log {}: {error}", path.display())))?;
    *KEPT.lock().unwrap_or_else(PoisonError::into_inner) = Kept::Open(file);
    Ok(())
}

/// Reads a filter: a level for wirelab's own crates, or TARGET=LEVEL, separated by commas.
///
/// # Errors
/// If a word is not a level.
fn filter(text: &str) -> Result<Targets> {
    let mut targets = Targets::new();
    for directive in text.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        let (target, word) = directive.split_once('=').unwrap_or((OURS, directive));
        let level: LevelFilter = LEVELS
            .iter()
            .find(|level| word.eq_ignore_ascii_case(level))
            .map_or_else(|| Err(unknown_level(word)), |level| level.parse().map_err(|_| unknown_level(word)))?;
        targets = targets.with_target(target.trim(), level);
    }
    Ok(targets)
}

fn unknown_level(word: &str) -> Failure {
    Failure::input(format!(
        "{VARIABLE}: `{word}` is not a level{}. The levels are {}. A filter is LEVEL or TARGET=LEVEL, or several of \
         them with commas",
        did_you_mean(word, LEVELS),
        LEVELS.join(", ")
    ))
}

/// Writes lines above the progress bar.
struct Stderr;

impl Write for Stderr {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        stderr::write(&String::from_utf8_lossy(line));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes lines to the log file of this process, as soon as it has one. Errors are ignored: a full disk must not end a
/// run because of its log.
struct KeptLog;

impl Write for KeptLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Kept::At(path) = &*kept
            && let Ok(file) = File::options().create(true).append(true).open(path)
        {
            *kept = Kept::Open(file);
        }
        if let Kept::Open(file) = &mut *kept {
            let _ = file.write_all(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn a_level_is_for_wirelab_and_other_libraries_are_named() {
        let targets = filter("debug, quinn=TRACE").unwrap();
        assert!(targets.would_enable("wirelab_run::blocks", &Level::DEBUG));
        assert!(!targets.would_enable("wirelab_run::blocks", &Level::TRACE));
        assert!(targets.would_enable("quinn::connection", &Level::TRACE));
        assert!(!targets.would_enable("hyper", &Level::ERROR));
    }

    #[test]
    fn a_wrong_level_names_the_nearest_one() {
        for text in ["debgu", "wirelab_run=debgu"] {
            let error = format!("{:?}", filter(text).unwrap_err());
            assert!(error.contains("WIRELAB_LOG: `debgu` is not a level, did you mean `debug`"), "{error}");
        }
    }
}
