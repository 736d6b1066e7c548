//! Logs that a browser writes of its connections, for inspection with other tools.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::Browser;

/// The logs to write. All of them cost the browser time during page loads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Logs {
    /// The key log of TLS and QUIC secrets, with which Wireshark decrypts packets; the browser appends to this file.
    pub keys: Option<PathBuf>,
    /// The folder for Chromium's netlogs: one file per start of the browser.
    pub netlog: Option<PathBuf>,
    /// The folder for Firefox' qlogs: one file per QUIC connection.
    pub qlog: Option<PathBuf>,
}

impl Logs {
    /// Whether a log is complete only after the browser has ended by itself.
    #[must_use]
    pub const fn need_an_end(&self) -> bool {
        self.keys.is_some() || self.netlog.is_some() || self.qlog.is_some()
    }

    /// The first of these logs that a browser cannot write: its key in the endpoint contract, and the reason.
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

    /// Those of these logs that a browser can write.
    #[must_use]
    pub fn of(&self, browser: Browser) -> Self {
        match browser {
            Browser::Chromium => Self { qlog: None, ..self.clone() },
            Browser::Firefox => Self { netlog: None, ..self.clone() },
        }
    }
}

/// The first unused file name: `chromium-h2-0.json`, `chromium-h2-1.json`, and so on.
pub(crate) fn unused(folder: &Path, stem: &str, ending: &str) -> PathBuf {
    let file = |number: u32| folder.join(format!("{stem}-{number}.{ending}"));
    (0..u32::MAX).map(file).find(|path| !path.exists()).unwrap_or_else(|| file(u32::MAX))
}

/// Copies the qlog files from Firefox' temporary folder, `qlog_PID/NAME.sqlog`.
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
