//! The supported browsers, and where they are installed.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use thiserror::Error;

/// A browser that loads pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Browser {
    /// Chromium, or Google Chrome.
    Chromium,
    /// Firefox, or its extended support release.
    Firefox,
}

/// The error that a browser is not installed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "{what} is not installed (sought: {sought}). Remedy: sudo apt-get install {package}, or set {variable} to its program"
)]
pub struct NotInstalled {
    what: &'static str,
    sought: String,
    package: &'static str,
    variable: &'static str,
}

impl Browser {
    /// All browsers, in the order of reports.
    pub const ALL: [Self; 2] = [Self::Chromium, Self::Firefox];

    /// The name on the command line.
    #[must_use]
    pub const fn token(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox",
        }
    }

    /// The name shown to people.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Chromium => "Chromium",
            Self::Firefox => "Firefox",
        }
    }

    /// The environment variable with the path of another program.
    const fn variable(self) -> &'static str {
        match self {
            Self::Chromium => "WIRELAB_CHROMIUM",
            Self::Firefox => "WIRELAB_FIREFOX",
        }
    }

    /// The Debian package.
    const fn package(self) -> &'static str {
        match self {
            Self::Chromium => "chromium",
            Self::Firefox => "firefox-esr",
        }
    }

    /// The programs, the preferred one first: paths, or names to search in `$PATH`. Debian's `chromium` is a script
    /// that adds flags, so the program itself comes first.
    const fn programs(self) -> &'static [&'static str] {
        match self {
            Self::Chromium => {
                &["/usr/lib/chromium/chromium", "chromium", "chromium-browser", "google-chrome-stable", "google-chrome"]
            }
            Self::Firefox => &["/usr/lib/firefox-esr/firefox-esr", "firefox-esr", "firefox"],
        }
    }

    /// The path of the browser's program.
    ///
    /// # Errors
    /// If it is not installed; the message has the remedy.
    pub fn find(self) -> Result<PathBuf, NotInstalled> {
        let named = std::env::var(self.variable()).ok().filter(|path| !path.is_empty());
        let path = std::env::var_os("PATH").unwrap_or_default();
        let candidates: Vec<&str> = match &named {
            Some(program) => vec![program],
            None => self.programs().to_vec(),
        };
        let found = candidates.iter().find_map(|program| {
            if program.contains('/') {
                return is_program(Path::new(program)).then(|| PathBuf::from(program));
            }
            std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| is_program(file))
        });
        found.ok_or_else(|| NotInstalled {
            what: self.title(),
            sought: candidates.join(", "),
            package: self.package(),
            variable: self.variable(),
        })
    }
}

impl fmt::Display for Browser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.token())
    }
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}
