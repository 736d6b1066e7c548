//! Errors of runs: each states the attempt, the place and the remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use wirelab_lab::LabError;
use wirelab_model::reason::{LabFault, Reason};

/// Why a run cannot be created, read or continued. A failed trial is not an error: its outcome is recorded.
#[derive(Debug)]
pub enum RunError {
    /// A file system operation failed.
    Io {
        /// Attempted operation, for example `cannot append to the journal`.
        attempt: &'static str,
        /// Affected path.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The folder is not a run, or has a layout that this version does not support.
    NotARun {
        /// The folder.
        path: PathBuf,
        /// The fault of the folder.
        why: String,
    },
    /// Another wirelab process works on the run.
    Busy {
        /// The run's folder.
        path: PathBuf,
    },
    /// A file of the run has invalid content.
    Damaged {
        /// The file.
        path: PathBuf,
        /// Position and kind of the damage.
        why: String,
    },
    /// Conditions changed since the run began, so further trials would not be comparable.
    Changed {
        /// The changes, each as a phrase with both values.
        what: Vec<String>,
    },
    /// An endpoint violates the contract, so its reports are invalid.
    Contract {
        /// Endpoint and role.
        who: String,
        /// The violation.
        cause: LabError,
    },
    /// The system lacks open files, processes or memory.
    Short {
        /// The refusal.
        cause: LabError,
    },
    /// The plan exceeds the limits for foreign hosts.
    Impolite {
        /// Host and excess.
        why: String,
    },
    /// The lab failed during the run, for example because one of its processes was killed.
    LabLost {
        /// The failure.
        cause: LabError,
    },
    /// The server that a user brought does not start, so that no trial was started.
    ServerDoesNotStart {
        /// How it ended.
        reason: Box<Reason>,
        /// Its standard output and error.
        log: PathBuf,
    },
    /// The study or its options cannot be run.
    Refused {
        /// Refused item, reason and remedy.
        why: String,
    },
}

impl RunError {
    /// For `map_err`: adds the attempt and the path to a file system error.
    pub(crate) fn io(attempt: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { attempt, path: path.to_owned(), source }
    }

    /// An endpoint could not be started, or broke the contract.
    pub(crate) fn endpoint(who: impl Into<String>, cause: LabError) -> Self {
        match cause.fault() {
            LabFault::Refused => Self::Short { cause },
            _ => Self::Contract { who: who.into(), cause },
        }
    }

    /// Remedy, as a sentence.
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
            Self::Short { .. } => "Then start again.",
            Self::Impolite { .. } => "If you may send load to these hosts, add --i-may-load-these-hosts.",
            Self::LabLost { .. } => "Nothing that was recorded is lost; continue with `wirelab resume`.",
            Self::ServerDoesNotStart { .. } => "No trial was started.",
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
            Self::Contract { who, cause } => write!(f, "{who} breaks the endpoint contract: {cause}")?,
            Self::ServerDoesNotStart { reason, log } => write!(f, "{reason}. Its output is in {}", log.display())?,
            Self::LabLost { cause } | Self::Short { cause } => write!(f, "{cause}")?,
            Self::Impolite { why } | Self::Refused { why } => f.write_str(why)?,
        }
        write!(f, ". {}", self.remedy())
    }
}

impl std::error::Error for RunError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            Self::Contract { cause, .. } | Self::LabLost { cause } | Self::Short { cause } => Some(cause),
            _ => None,
        }
    }
}
