//! What a browser writes of its connections beside the page: for looking into a load, with tools of others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Browser;

/// What to write, and where. All of it takes the browser's time while pages load.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    /// The secrets of TLS and QUIC, added to this file: a key log, by which Wireshark decrypts packets.
    pub keys: Option<PathBuf>,
    /// What Chromium's network stack does: a file for each start of the browser, in this folder.
    pub netlog: Option<PathBuf>,
    /// What Firefox' QUIC does: a qlog file for each connection, in this folder.
    pub qlog: Option<PathBuf>,
}

impl Logs {
    /// Whether something is complete only once the browser has ended by itself.
    #[must_use]
    pub const fn need_an_end(&self) -> bool {
        self.keys.is_some() || self.netlog.is_some() || self.qlog.is_some()
    }

    /// What of it a browser does not write, by the key of the endpoint contract, and why.
    #[must_use]
    pub const fn refused_by(&self, browser: Browser) -> Option<&'static str> {
        match browser {
            Browser::Chromium if self.qlog.is_some() => {
                Some("`qlog_dir`: Chromium writes no qlog; a netlog holds what its QUIC does")
            }
            Browser::Firefox if self.netlog.is_some() => {
                Some("`netlog_dir`: Firefox writes no netlog; qlog holds what its QUIC does")
            }
            _ => None,
        }
    }

    /// That of it which a browser writes.
    #[must_use]
    pub fn of(&self, browser: Browser) -> Self {
        match browser {
            Browser::Chromium => Self { qlog: None, ..self.clone() },
            Browser::Firefox => Self { netlog: None, ..self.clone() },
        }
    }
}

/// A file that is not there yet: `chromium-h2-0.json`, `chromium-h2-1.json`, and so on.
pub(crate) fn unused(folder: &Path, stem: &str, ending: &str) -> PathBuf {
    let file = |number: u32| folder.join(format!("{stem}-{number}.{ending}"));
    (0..u32::MAX).map(file).find(|path| !path.exists()).unwrap_or_else(|| file(u32::MAX))
}

/// Copies the qlog files that Firefox left below its temporary folder, `qlog_PID/NAME.sqlog`.
pub(crate) fn take_qlog(temporary: &Path, folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(temporary)? {
        let left = entry?.path();
        let is_qlog = left.file_name().is_some_and(|name| name.to_string_lossy().starts_with("qlog_"));
        if !is_qlog || !left.is_dir() {
            continue;
        }
        for file in fs::read_dir(&left)? {
            let file = file?.path();
            if let Some(name) = file.file_name() {
                fs::copy(&file, folder.join(name))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_browser_is_asked_for_what_it_writes() {
        let [keys, netlog, qlog] = ["k", "n", "q"].map(|name| Some(PathBuf::from(name)));
        let all = Logs { keys: keys.clone(), netlog: netlog.clone(), qlog: qlog.clone() };
        assert_eq!(all.of(Browser::Chromium), Logs { keys: keys.clone(), netlog, qlog: None });
        assert_eq!(all.of(Browser::Firefox), Logs { keys, netlog: None, qlog });
        for browser in Browser::ALL {
            assert!(all.refused_by(browser).is_some() && all.of(browser).refused_by(browser).is_none());
        }
        assert!(!Logs::default().need_an_end());
    }

    #[test]
    fn files_have_names_of_their_own_and_qlog_is_found() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        assert_eq!(unused(to.path(), "a", "json"), to.path().join("a-0.json"));
        fs::write(to.path().join("a-0.json"), "").unwrap();
        assert_eq!(unused(to.path(), "a", "json"), to.path().join("a-1.json"));
        fs::create_dir(from.path().join("qlog_17")).unwrap();
        fs::write(from.path().join("qlog_17/0abc.sqlog"), "x").unwrap();
        fs::write(from.path().join("other"), "y").unwrap();
        take_qlog(from.path(), to.path()).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("0abc.sqlog")).unwrap(), "x");
        assert!(!to.path().join("other").exists());
    }
}
