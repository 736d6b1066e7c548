//! Applies a preset and the command line to a study.

use serde_json::Value;
use wirelab_model::settings::Settings;
use wirelab_model::study::{Factor, Study};
use wirelab_model::units::{BitRate, Share, Span};

use crate::check;
use crate::error::StudyError;
use crate::every;
use crate::factor::{keys_of, level_name, level_names, one_setting, overlaid};
use crate::preset::{DEFAULT_PRESET, ExplicitBounds, with_preset};
use crate::words::{nearest, one_of};

/// Keys of `--set` besides factors and settings.
const KEYS: [&str; 11] = [
    "seed",
    "lab",
    "link_load",
    "planted",
    "references",
    "blocks.min",
    "blocks.max",
    "blocks.budget",
    "blocks.precision",
    "compare.baseline",
    "compare.margin",
];

/// Applies a preset, then each `key=value` of `--set` in turn. The result has no presets.
///
/// A key is one of the following, in this order:
/// - a factor: replaces its levels (`payload=1 KiB,8 KiB`), or selects among named levels;
/// - `seed`, `lab`, `link_load`, `planted`, `references`, `blocks.min`, `blocks.max`, `blocks.budget`,
///   `blocks.precision`, `compare.baseline` or `compare.margin`;
/// - a setting: one value fixes it in the workload, several values make it a factor.
///
/// If only one of `blocks.min` and `blocks.max` is set and the other contradicts it, the other follows. `requests`
/// and `duration` replace each other.
///
/// # Errors
/// If the preset, key or level is unknown (with the nearest known one), or the value is invalid for the key. Also if
/// a factor's levels would hide a setting, or the baseline of the comparison is removed.
pub fn resolve(study: Study, preset: Option<&str>, sets: &[String]) -> Result<Study, StudyError> {
    let mut study = match preset {
        None | Some(DEFAULT_PRESET) => study,
        Some(name) => {
            let Some(preset) = study.presets.get(name).cloned() else { return Err(unknown_preset(&study, name)) };
            with_preset(study, &preset)
        }
    };
    study.presets.clear();
    let mut explicit = ExplicitBounds::default();
    for set in sets {
        apply(&mut study, set, &mut explicit).map_err(|error| error.when(&format!("`--set {set}`")))?;
    }
    explicit.reconcile(&mut study);
    if let Some(set) = explicit.compared {
        let levels = study.factors.get(&study.compare.factor).map(level_names).unwrap_or_default();
        let baseline = &study.compare.baseline;
        if !levels.contains(baseline) {
            let message = format!(
                "`--set {set}` removes the baseline `{baseline}`, with which the study compares; keep it, or name \
                 another with `--set compare.baseline={}`",
                levels.first().map_or("LEVEL", String::as_str)
            );
            return Err(StudyError::new(message));
        }
    }
    check::resolved(&study)?;
    Ok(study)
}

/// Moves a study to another lab. A note in front of its `limits` says that they were written for the original lab.
pub fn move_to(study: &mut Study, lab: &str) {
    if study.lab == lab {
        return;
    }
    if let Some(limits) = &mut study.limits {
        *limits = format!("Written for the lab `{}`, but this run uses `{lab}`: {limits}", study.lab);
    }
    lab.clone_into(&mut study.lab);
}

fn unknown_preset(study: &Study, name: &str) -> StudyError {
    let known: Vec<_> = [DEFAULT_PRESET].into_iter().chain(study.presets.keys().map(String::as_str)).collect();
    let message = format!("the study `{}` has no preset `{name}`, only {}", study.name, one_of(&known));
    StudyError::new(message).meant(nearest(name, known))
}

fn apply(study: &mut Study, set: &str, explicit: &mut ExplicitBounds) -> Result<(), StudyError> {
    let Some((key, text)) = set.split_once('=') else {
        return Err(StudyError::new("expected `KEY=VALUE`, or `KEY=VALUE,VALUE` for several levels"));
    };
    let (key, text) = (key.trim(), text.trim());
    let words: Vec<_> = text.split(',').map(str::trim).collect();
    if words.iter().any(|word| word.is_empty()) {
        return Err(StudyError::new(format!("a value of `{key}` is empty")));
    }
    if let Some(factor) = study.factors.get_mut(key) {
        replace_levels(key, factor, &words)?;
        if key == study.compare.factor {
            explicit.compared = Some(set.to_owned());
        }
        return Ok(());
    }
    match key {
        "seed" => study.seed = parsed(text, "a whole number from 0")?,
        "link_load" => study.link_load = Some(parsed::<BitRate>(text, "a bit rate such as `100 Mbit/s`")?),
        "planted" => study.planted = parsed::<Share>(text, "a share such as `10 %`")?,
        "references" => study.references = parsed::<Share>(text, "a share such as `10 %`")?,
        "lab" => move_to(study, text),
        "blocks.min" => (study.blocks.min, explicit.min) = (parsed(text, "a number of blocks")?, true),
        "blocks.max" => (study.blocks.max, explicit.max) = (parsed(text, "a number of blocks")?, true),
        "blocks.budget" => study.blocks.budget = Some(parsed::<Span>(text, "a length of time such as `10 min`")?),
        "blocks.precision" => study.blocks.precision = parsed::<Share>(text, "a share such as `5 %`")?,
        "compare.margin" => study.compare.margin = parsed::<Share>(text, "a share such as `5 %`")?,
        "compare.baseline" => study.compare.baseline = text.to_owned(),
        _ => fix(study, key, &words)?,
    }
    Ok(())
}

fn parsed<T: std::str::FromStr>(text: &str, expected: &str) -> Result<T, StudyError> {
    text.parse().map_err(|_| StudyError::new(format!("`{text}` is not {expected}")))
}

fn replace_levels(key: &str, factor: &mut Factor, words: &[&str]) -> Result<(), StudyError> {
    match factor {
        Factor::Values(values) => *values = settings_of(key, words)?,
        Factor::Levels(levels) => {
            let mut chosen = indexmap::IndexMap::new();
            for word in words {
                let Some(level) = levels.get(*word) else {
                    let known: Vec<_> = levels.keys().collect();
                    let message = format!("`{word}` is not a level of `{key}`, which has {}", one_of(&known));
                    let meant = nearest(word, known.iter().map(|name| name.as_str()));
                    return Err(StudyError::new(message).meant(meant));
                };
                if chosen.insert((*word).to_owned(), level.clone()).is_some() {
                    return Err(StudyError::new(format!("the level `{word}` is named twice")));
                }
            }
            *levels = chosen;
        }
    }
    Ok(())
}

/// Values of a setting, each checked.
fn settings_of(key: &str, words: &[&str]) -> Result<Vec<Value>, StudyError> {
    let mut values: Vec<Value> = Vec::new();
    for word in words {
        let value = scalar(word);
        one_setting(key, &value).map_err(|(message, meant)| StudyError::new(message).meant(meant))?;
        if values.iter().any(|other| level_name(other) == *word) {
            return Err(StudyError::new(format!("the level `{word}` is named twice")));
        }
        values.push(value);
    }
    Ok(values)
}

/// A TOML number or truth value if the word parses as one, otherwise text.
fn scalar(word: &str) -> Value {
    match word.parse::<toml::Value>() {
        Ok(toml::Value::Integer(number)) => number.into(),
        Ok(toml::Value::Float(number)) if number.is_finite() => number.into(),
        Ok(toml::Value::Boolean(truth)) => truth.into(),
        Ok(toml::Value::String(text)) => text.into(),
        _ => word.into(),
    }
}

/// Fixes a setting in the workload; several values make it a factor.
fn fix(study: &mut Study, key: &str, words: &[&str]) -> Result<(), StudyError> {
    let settings = Settings::keys();
    if !settings.iter().any(|setting| setting == key) {
        let known: Vec<_> = study.factors.keys().chain(&settings).map(String::as_str).chain(KEYS).collect();
        let message = format!("no factor and no setting has the name `{key}`");
        return Err(StudyError::new(message).meant(nearest(key, known)));
    }
    let other = match key {
        "requests" => "duration",
        "duration" => "requests",
        key => key,
    };
    for (name, factor) in &study.factors {
        let set = keys_of(name, factor);
        if let Some(level) = set.get(key).or_else(|| set.get(other)) {
            let message = format!(
                "`{key}` is set by the factor `{name}` (for example by its level `{level}`), which would hide this; \
                 choose levels with `--set {name}=…`, or change the study file"
            );
            return Err(StudyError::new(message));
        }
    }
    let values = settings_of(key, words)?;
    match values.as_slice() {
        [value] if !every::stands_for_all(key, &level_name(value)) => {
            let one = one_setting(key, value).map_err(|(message, meant)| StudyError::new(message).meant(meant))?;
            study.workload = overlaid(&study.workload, &one);
        }
        _ => {
            // A varied setting must not be fixed as well.
            study.workload = without(&study.workload, &[key, other]);
            study.factors.insert(key.to_owned(), Factor::Values(values));
        }
    }
    Ok(())
}

fn without(settings: &Settings, keys: &[&str]) -> Settings {
    let mut value = serde_json::to_value(settings).unwrap_or_default();
    if let Some(map) = value.as_object_mut() {
        map.retain(|key, _| !keys.contains(&key.as_str()));
    }
    serde_json::from_value(value).unwrap_or_else(|_| settings.clone())
}
