//! Factors: level names, and the settings of each level.

use indexmap::IndexMap;
use serde_json::Value;
use wirelab_model::settings::Settings;
use wirelab_model::study::Factor;

use crate::error::StudyError;
use crate::words;

/// Name of a level that is written as a value: text verbatim (including sizes), numbers and truth values as in JSON.
pub(crate) fn level_name(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Level names of a factor, in file order.
pub(crate) fn level_names(factor: &Factor) -> Vec<String> {
    match factor {
        Factor::Values(values) => values.iter().map(level_name).collect(),
        Factor::Levels(levels) => levels.keys().cloned().collect(),
    }
}

/// Levels of a factor with their settings.
///
/// # Errors
/// If a level's value is invalid for the setting; the message names the level.
pub(crate) fn levels(name: &str, factor: &Factor) -> Result<Vec<(String, Settings)>, StudyError> {
    match factor {
        Factor::Levels(levels) => Ok(levels.iter().map(|(level, set)| (level.clone(), set.clone())).collect()),
        Factor::Values(values) => values
            .iter()
            .map(|value| match one_setting(name, value) {
                Ok(settings) => Ok((level_name(value), settings)),
                Err((message, _)) => Err(StudyError::new(format!("level `{}`: {message}", level_name(value)))),
            })
            .collect(),
    }
}

/// Error text for lists, tables, dates and non-finite numbers (`nan`).
pub(crate) const NOT_SCALAR: &str = "a level is text in quotes, a finite number, `true` or `false`";

pub(crate) fn is_scalar(value: &Value) -> bool {
    value.is_string() || value.is_number() || value.is_boolean()
}

/// Settings with only `key` set.
///
/// # Errors
/// If the key is unknown or cannot have this value; returns the message and the word that was probably meant.
pub(crate) fn one_setting(key: &str, value: &Value) -> Result<Settings, (String, Option<String>)> {
    if !is_scalar(value) {
        return Err((NOT_SCALAR.to_owned(), None));
    }
    let object = Value::Object([(key.to_owned(), value.clone())].into_iter().collect());
    serde_json::from_value(object).map_err(|error| words::explain(&error.to_string()))
}

/// Keys that these settings set.
pub(crate) fn keys(settings: &Settings) -> Vec<String> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(map)) => map.into_iter().map(|(key, _)| key).collect(),
        _ => Vec::new(),
    }
}

/// Keys that the factor's levels set, each with one level that sets it.
pub(crate) fn keys_of(name: &str, factor: &Factor) -> IndexMap<String, String> {
    match factor {
        Factor::Values(values) => {
            values.first().map(|value| (name.to_owned(), level_name(value))).into_iter().collect()
        }
        Factor::Levels(levels) => {
            let mut found = IndexMap::new();
            for (level, settings) in levels {
                for key in keys(settings) {
                    found.entry(key).or_insert_with(|| level.clone());
                }
            }
            found
        }
    }
}

/// `base` with every setting of `over` applied. `requests` and `duration` replace each other, because a window has
/// one length.
pub(crate) fn overlaid(base: &Settings, over: &Settings) -> Settings {
    let mut merged = base.overlaid(over);
    if over.requests.is_some() && over.duration.is_none() {
        merged.duration = None;
    }
    if over.duration.is_some() && over.requests.is_none() {
        merged.requests = None;
    }
    merged
}
