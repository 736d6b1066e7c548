//! The changes that the pages may make, if the server may write.

use serde::{Deserialize, Serialize};

use crate::library::LibraryError;

/// Study files, runs of its own, and tags. The methods may block.
pub trait Workshop: Send + Sync + 'static {
    /// The studies to begin with.
    ///
    /// # Errors
    /// If the working folder cannot be read.
    fn sources(&self) -> Result<Sources, LibraryError>;

    /// The text of a study to edit, and the name of its file.
    ///
    /// # Errors
    /// If there is no such study, or it cannot be read.
    fn open(&self, source: &Source) -> Result<Draft, LibraryError>;

    /// The words that complete a study, as JSON: `schema`, a JSON Schema, and `words`, further values by dotted path.
    fn completions(&self) -> String;

    /// What is wrong with a study, or how large its plan is.
    fn check(&self, draft: &Draft) -> Checked;

    /// Writes a study into the working folder. A file whose text the editor does not know is replaced only if `replace`
    /// is set.
    ///
    /// # Errors
    /// If the name leads out of the folder or is no study file, or the file cannot be written.
    fn save(&self, draft: &Draft, replace: bool) -> Result<Saved, LibraryError>;

    /// Starts or resumes a run, and returns its name once it has one.
    ///
    /// # Errors
    /// If a run is in progress, or this one ends before it has a name; the message has the reason.
    fn start(&self, order: &Order) -> Result<String, LibraryError>;

    /// Ends the run in progress as Ctrl-C does.
    ///
    /// # Errors
    /// If this server has started no run, or it has ended.
    fn stop(&self) -> Result<(), LibraryError>;

    /// The newest run of this server.
    fn started(&self) -> Option<Started>;

    /// Adds a tag to a run, or removes it.
    ///
    /// # Errors
    /// If no run has this name, or the tag is not valid.
    fn tag(&self, run: &str, tag: &str, remove: bool) -> Result<(), LibraryError>;
}

/// Studies to begin with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    /// Built-in studies: name and title.
    pub builtin: Vec<(String, String)>,
    /// Names of the study files in the working folder.
    pub files: Vec<String>,
    /// The working folder, for people.
    pub folder: String,
}

/// A study to begin with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Builtin(String),
    File(String),
    /// The study of a run, as it was resolved.
    Run(String),
}

/// A study in the editor.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
pub struct Draft {
    /// The name of its file.
    pub file: String,
    pub text: String,
    /// The preset to apply; empty for none.
    #[serde(default)]
    pub preset: String,
    /// The text of the file as the editor last read or wrote it, if it did.
    #[serde(default)]
    pub known: Option<String>,
}

/// The result of a check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Checked {
    /// All mistakes; without one, the study can be started.
    pub mistakes: Vec<Mistake>,
    /// The size and the duration of the plan.
    pub plan: Option<String>,
    /// The names of its presets.
    pub presets: Vec<String>,
}

/// A mistake in a study.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    /// Line and column, both from 1, if known.
    pub line: Option<usize>,
    pub column: Option<usize>,
    /// The problem and the expectation.
    pub message: String,
    /// The word that was probably meant.
    pub meant: Option<String>,
}

/// The result of saving a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Saved {
    /// The file has the text.
    Written,
    /// The file has a text that the editor does not know, and keeps it.
    Exists,
}

/// A run to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// That of a study file of the working folder, with a preset.
    Study { file: String, preset: Option<String> },
    /// The rest of this run.
    Resume(String),
}

/// A run that this server started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Started {
    /// The study file, or the resumed run.
    pub what: String,
    /// The name of the run, once it has one.
    pub run: Option<String>,
    /// The last words of its process, once it has ended.
    pub end: Option<String>,
}
