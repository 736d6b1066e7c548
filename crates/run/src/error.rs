//! What a run could not do: each error names the attempt, the place and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run cannot be made, read or continued. A trial that fails is not an error: it is recorded with its outcome.
#[derive(Debug)]
pub enum RunError {
    /// The file system refused.
    Io {
        /// What was attempted, for example `cannot append to the journal`.
        attempt: &'static str,
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder is not that of a run, or of one in a layout that this build does not know.
    NotARun {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Another process of wirelab works on the run.
    Busy {
        /// The run's folder.
        path: PathBuf,
    },
    /// A file of the run does not hold what it should.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where in it and how.
        why: String,
    },
    /// The run was begun under other conditions, so that its trials would not be comparable with further ones.
    Changed {
        /// What changed, each as a phrase with both values.
        what: Vec<String>,
    },
    /// An endpoint breaks the contract, so that nothing it reports may be used.
    Contract {
        /// The endpoint and its role.
        who: String,
        /// What it did.
        why: String,
    },
    /// The plan asks more of hosts that are not ours than is polite.
    Impolite {
        /// Of which, and how much.
        why: String,
    },
    /// The study or its options ask for something that cannot be done.
    Refused {
        /// What, why, and what to do instead.
        why: String,
    },
}

impl RunError {
    /// For `map_err`: the attempt and the path that an error of the file system belongs to.
    pub(crate) fn io(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { attempt, path: path.to_owned(), source }
    }

    /// What to do about it.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "Free some space and continue with `wirelab resume`, or choose another folder with `--out`; \
                     nothing that was recorded is lost."
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "Choose a folder that you may write to with `--out`, or change its permissions."
                }
                io::ErrorKind::NotFound => "Check the path.",
                io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
                    "A file is in the way: move it, or choose another folder with `--out`."
                }
                _ => "Check the file system, then continue with `wirelab resume`; nothing that was recorded is lost.",
            },
            Self::NotARun { .. } => "Give the folder that `wirelab run` printed; it contains `manifest.json`.",
            Self::Busy { .. } => "Wait until the other process is done, or end it.",
            Self::Damaged { .. } => "Restore the file from a copy, or measure again.",
            Self::Changed { .. } => {
                "Start a new run; or continue with `--force`, which keeps a warning in every report of this run."
            }
            Self::Contract { .. } => "Run `wirelab endpoints check NAME`, and repair the endpoint.",
            Self::Impolite { .. } => "If you may send load to these hosts, say so with --i-may-load-these-hosts.",
            Self::Refused { .. } => "Change the study or the options and start again.",
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { attempt, path, source } => write!(f, "{attempt} `{}`: {source}", path.display())?,
            Self::NotARun { path, why } => write!(f, "`{}` is not a run that can be read: {why}", path.display())?,
            Self::Busy { path } => write!(f, "another wirelab process works on `{}`", path.display())?,
            Self::Damaged { path, why } => write!(f, "`{}` is damaged: {why}", path.display())?,
            Self::Changed { what } => {
                write!(f, "the run was begun under other conditions: {}", what.join("; "))?;
            }
            Self::Contract { who, why } => write!(f, "{who} breaks the endpoint contract: {why}")?,
            Self::Impolite { why } | Self::Refused { why } => f.write_str(why)?,
        }
        write!(f, ". {}", self.remedy())
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
