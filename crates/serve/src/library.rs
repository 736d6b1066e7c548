//! The data of the pages.

use std::fmt;

/// The runs of a folder. The methods may block.
pub trait Library: Send + Sync + 'static {
    /// All runs, newest first.
    ///
    /// # Errors
    /// If the folder cannot be read. A run that cannot be read is an entry with [`State::Unreadable`].
    fn runs(&self) -> Result<Vec<Entry>, LibraryError>;

    /// The progress of a run.
    ///
    /// # Errors
    /// If no run has this name, or it cannot be read.
    fn progress(&self, run: &str) -> Result<Progress, LibraryError>;

    /// The tags of a run.
    ///
    /// # Errors
    /// As [`Self::progress`].
    fn tags(&self, run: &str) -> Result<Vec<String>, LibraryError>;

    /// The claims of each study and lab with claims, by the newest run that has reached its end.
    ///
    /// # Errors
    /// If the folder or such a run cannot be read.
    fn claims(&self) -> Result<Vec<StudyClaims>, LibraryError>;

    /// The report of a run so far.
    ///
    /// # Errors
    /// As [`Self::progress`].
    fn report(&self, run: &str, format: Format) -> Result<String, LibraryError>;

    /// The comparison of two runs, as text.
    ///
    /// # Errors
    /// As [`Self::progress`]; also if the runs have no cell in common.
    fn compare(&self, runs: [&str; 2]) -> Result<String, LibraryError>;

    /// The history of a metric over the runs of a study, as a page; without `metric` the first that the study compares.
    ///
    /// # Errors
    /// If no run is of this study, or no run has measured the metric.
    fn history(&self, study: &str, metric: Option<&str>) -> Result<String, LibraryError>;
}

/// A run in the list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The name of its folder, which identifies it.
    pub name: String,
    /// The name of its study.
    pub study: String,
    /// The title of its study.
    pub title: String,
    /// The time of its creation, RFC 3339.
    pub created: String,
    pub lab: String,
    /// The processor of the machine.
    pub machine: String,
    /// The user's words for it.
    pub tags: Vec<String>,
    /// How far it is.
    pub progress: Progress,
}

/// The verdicts on a study in a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyClaims {
    pub study: String,
    pub lab: String,
    /// The name of the run whose data the verdicts are about.
    pub run: String,
    pub claims: Vec<Claim>,
}

/// A claim with its verdict, all in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub id: String,
    pub text: String,
    pub verdict: String,
    /// The number of effects by verdict.
    pub effects: String,
}

/// How far a run is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// Whether it runs.
    pub state: State,
    /// Blocks with at least one trial.
    pub blocks: u32,
    /// Trials of the plan that have ended.
    pub trials: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// The newest failures, newest first, as text.
    pub failures: Vec<String>,
    /// A number that changes with each record of the run, also with those beside the plan.
    pub revision: u64,
}

/// The state of a run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum State {
    /// It is in progress.
    #[default]
    Running,
    /// It has reached its planned end.
    Ended,
    /// It was stopped before its planned end, and can be resumed.
    Stopped,
    /// Its folder is damaged; the text names the cause.
    Unreadable(String),
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Running => f.write_str("running"),
            Self::Ended => f.write_str("ended"),
            Self::Stopped => f.write_str("stopped"),
            Self::Unreadable(why) => write!(f, "unreadable: {why}"),
        }
    }
}

/// The format of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// A page for browsers.
    Html,
    /// Cells, one row for each metric.
    Csv,
    /// Everything.
    Json,
    /// Tables for a merge request.
    Markdown,
}

/// The reason why a page cannot be shown, or a change is not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LibraryError {
    /// No run has this name.
    #[error("no run `{0}` in this folder")]
    NoRun(String),
    /// The request asks for what the runs do not have.
    #[error("{0}")]
    Refused(String),
    /// A run or the folder cannot be read.
    #[error("{0}")]
    Failed(String),
}
