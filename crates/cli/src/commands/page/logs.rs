//! Logs that browsers write of their connections: key logs, netlog, qlog.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use wirelab_browser::{Browser, Logs, Session, Trouble};
use wirelab_model::protocol::Protocol;

use super::Browsers;
use super::loads::Running;
use crate::args::PageArgs;
use crate::failure::{Failure, Result};

/// The logs that the options name, with absolute paths, because browsers run in folders of their own.
pub fn of(args: &PageArgs) -> Logs {
    let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
    Logs {
        keys: args.keys.as_ref().map(absolute),
        netlog: args.netlog.as_ref().map(absolute),
        qlog: args.qlog.as_ref().map(absolute),
    }
}

/// The names of these logs.
pub fn names(args: &PageArgs) -> Vec<&'static str> {
    let asked = [("keys", args.keys.is_some()), ("netlog", args.netlog.is_some()), ("qlog", args.qlog.is_some())];
    asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name).collect()
}

/// Refuses a log that no browser in the command writes over any of the versions.
pub fn check(args: &PageArgs, browsers: &Browsers) -> Result {
    let missing = |flag: &str, browser: Browser| {
        let title = browser.title();
        Failure::input(format!("{flag} is written by {title} only, which does not take part. Add it to --browsers"))
    };
    if args.netlog.is_some() && !browsers.installed.contains_key(&Browser::Chromium) {
        return Err(missing("--netlog", Browser::Chromium));
    }
    if args.qlog.is_some() && !browsers.installed.contains_key(&Browser::Firefox) {
        return Err(missing("--qlog", Browser::Firefox));
    }
    if args.qlog.is_some() && !args.protocols.contains(&Protocol::H3) {
        return Err(Failure::input("--qlog is of QUIC, and --protocols has no h3"));
    }
    Ok(())
}

/// Creates files and folders before the first load. Only the owner can read the keys.
pub fn create(args: &PageArgs) -> Result {
    for (flag, folder) in [("--netlog", &args.netlog), ("--qlog", &args.qlog)] {
        folder.as_deref().map_or(Ok(()), |folder| new_folder(flag, folder))?;
    }
    let Some(keys) = &args.keys else { return Ok(()) };
    let opened = OpenOptions::new().create(true).append(true).mode(0o600).open(keys);
    opened.map(drop).map_err(|error| Failure::input(format!("cannot write --keys {}: {error}", keys.display())))
}

/// Creates a folder, or accepts an empty one.
pub fn new_folder(flag: &str, folder: &Path) -> Result {
    let wrong = |words: String| Failure::input(format!("{flag} {}: {words}", folder.display()));
    fs::create_dir_all(folder).map_err(|error| wrong(error.to_string()))?;
    let mut entries = fs::read_dir(folder).map_err(|error| wrong(error.to_string()))?;
    if entries.next().is_some() {
        return Err(wrong("the folder is not empty; name a new one".to_owned()));
    }
    Ok(())
}

/// Ends every browser that still runs, which completes its logs; returns a warning if one cannot be ended.
pub fn complete(running: Running) -> Option<String> {
    let ends = running.into_values().map(Session::close);
    // Ends all of them before the first error is reported.
    let ends: Vec<_> = ends.collect();
    ends.into_iter().find_map(|end| match end {
        Ok(()) | Err(Trouble::Stopped) => None,
        Err(Trouble::Failed { reason, .. }) => Some(reason),
    })
}
