//! Errors in a study file, worded for first-time authors.

use std::fmt;

use crate::locate::{self, Part, Place, Step, dotted};

/// Why a study cannot be used: the place, the problem, the expectation, and the nearest valid word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StudyError(Box<Inner>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Inner {
    message: String,
    suggestion: Option<String>,
    path: Vec<Step>,
    part: Part,
    place: Option<Place>,
    /// Further mistakes of the same file.
    others: Vec<StudyError>,
}

/// Upper limit of a message in characters: messages quote a file, which may contain anything.
const MAX_MESSAGE: usize = 800;

impl StudyError {
    /// An error without a place.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        let inner = Inner {
            message: message.into(),
            suggestion: None,
            path: Vec::new(),
            part: Part::Value,
            place: None,
            others: Vec::new(),
        };
        Self(Box::new(inner))
    }

    /// One error for all mistakes of a file, in its order.
    ///
    /// # Panics
    /// Without a mistake.
    pub(crate) fn all(mut mistakes: Vec<Self>) -> Self {
        mistakes.sort_by_key(Self::position);
        mistakes.dedup();
        let others = mistakes.split_off(1);
        let mut first = mistakes.pop().expect("a wrong file has a mistake");
        first.0.others = others;
        first
    }

    /// Adds the word that was probably meant.
    pub(crate) fn meant(mut self, suggestion: Option<impl Into<String>>) -> Self {
        self.0.suggestion = suggestion.map(Into::into);
        self
    }

    /// Places the error at the value of `path`.
    pub(crate) fn at(mut self, path: impl Into<Vec<Step>>) -> Self {
        (self.0.path, self.0.part) = (path.into(), Part::Value);
        self
    }

    /// Places the error at the key of `path`.
    pub(crate) fn at_key(mut self, path: impl Into<Vec<Step>>) -> Self {
        (self.0.path, self.0.part) = (path.into(), Part::Key);
        self
    }

    /// Places the error at a byte range of `text`.
    pub(crate) fn at_span(mut self, text: &str, file: &str, span: std::ops::Range<usize>) -> Self {
        self.0.place = Some(Place::of(text, file, span));
        self
    }

    /// Puts the steps to a table in front of the place within it.
    pub(crate) fn below(mut self, table: &[Step]) -> Self {
        self.0.path.splice(0..0, table.iter().cloned());
        self
    }

    /// Puts the attempted action in front of the message.
    pub(crate) fn when(mut self, attempt: &str) -> Self {
        self.0.message = format!("{attempt}: {}", self.0.message);
        self.0.path.clear();
        self
    }

    /// Removes the place, for an error in a part that no file has.
    pub(crate) fn without_path(mut self) -> Self {
        self.0.path.clear();
        self
    }

    /// Adds file, line and column, looked up in the text of the study.
    #[must_use]
    pub fn located(mut self, text: &str, file: &str) -> Self {
        if self.0.place.is_none() {
            let span = locate::span(text, &self.0.path, self.0.part);
            self.0.place = Some(Place::of(text, file, span));
        }
        self
    }

    /// The path and the part that the error points at.
    pub(crate) fn path(&self) -> (Vec<Step>, Part) {
        (self.0.path.clone(), self.0.part)
    }

    /// Whether the error has a path that is not yet located in a text.
    pub(crate) fn is_unplaced(&self) -> bool {
        self.0.place.is_none() && !self.0.path.is_empty()
    }

    /// All mistakes of the file, this one first.
    pub fn mistakes(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.0.others)
    }

    /// The problem and the expectation, without place and excerpt.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The word that was probably meant, if a known word is near enough.
    #[must_use]
    pub fn suggestion(&self) -> Option<&str> {
        self.0.suggestion.as_deref()
    }

    /// Line and column, both from 1, if known.
    #[must_use]
    pub fn position(&self) -> Option<(usize, usize)> {
        self.0.place.as_ref().map(|place| (place.line, place.column))
    }
}

impl fmt::Display for StudyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { message, suggestion, path, place, others, .. } = &*self.0;
        match place {
            Some(place) => write!(f, "{place}: ")?,
            None if !path.is_empty() => write!(f, "`{}`: ", dotted(path))?,
            None => {}
        }
        if message.chars().count() > MAX_MESSAGE {
            write!(f, "{}…", message.chars().take(MAX_MESSAGE).collect::<String>())?;
        } else {
            f.write_str(message)?;
        }
        if let Some(word) = suggestion {
            write!(f, "; did you mean `{word}`?")?;
        }
        place.as_ref().map_or(Ok(()), |place| write!(f, "\n{}", place.excerpt()))?;
        others.iter().try_for_each(|other| write!(f, "\n{other}"))?;
        if others.is_empty() { Ok(()) } else { write!(f, "\n{} mistakes", others.len() + 1) }
    }
}

impl std::error::Error for StudyError {}
