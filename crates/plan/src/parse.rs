//! Parses a study file.

use wirelab_model::study::Study;

use crate::error::StudyError;
use crate::limits::MAX_TEXT;
use crate::mistakes;
use crate::words;

/// Reads a study file. `file` is its name, for messages only.
///
/// # Errors
/// With all mistakes, each with file, line and column, if the text is not TOML, or a key or value is unknown. Also if
/// the study is invalid, for example by a factor without settings, an unknown level, or too many cells.
pub fn parse(text: &str, file: &str) -> Result<Study, StudyError> {
    parse_and(text, file, &|_| Ok(()))
}

/// The same with a further check, for example of the names of metrics. Its mistakes are reported with the others.
///
/// # Errors
/// As [`parse`], and those of `further`.
pub fn parse_and(
    text: &str,
    file: &str,
    further: &dyn Fn(&Study) -> Result<(), StudyError>,
) -> Result<Study, StudyError> {
    if text.len() > MAX_TEXT {
        let message =
            format!("{file}: the file has {} bytes, and a study file at most {MAX_TEXT}; is it a study?", text.len());
        return Err(StudyError::new(message));
    }
    let only_comments = text.lines().map(str::trim).all(|line| line.is_empty() || line.starts_with('#'));
    if only_comments {
        let message = "the study file is empty; a study has at least `name`, `title`, `question`, `[factors]` and \
                       `[compare]` (`wirelab studies` lists some to start from)";
        return Err(StudyError::new(message).at_span(text, file, 0..0));
    }
    mistakes::read(text, file, further)
}

/// Reads a TOML file of another kind than a study, with the same errors.
///
/// # Errors
/// With file, line and column, if the text is not TOML, or a key or value is unknown.
pub fn read<T: serde::de::DeserializeOwned>(text: &str, file: &str) -> Result<T, StudyError> {
    toml::from_str(text).map_err(|error| from_toml(&error, text, file))
}

/// Converts an error of the TOML reader, with its position and a message for study authors.
pub(crate) fn from_toml(error: &toml::de::Error, text: &str, file: &str) -> StudyError {
    let (message, meant) = words::explain(error.message());
    let error_without_place = StudyError::new(message).meant(meant);
    match error.span() {
        Some(span) => error_without_place.at_span(text, file, span),
        None => error_without_place.located(text, file),
    }
}
