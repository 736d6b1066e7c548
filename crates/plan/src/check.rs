//! Validity rules for a study beyond its types.

use std::collections::HashMap;

use indexmap::IndexMap;
use wirelab_model::settings::Settings;
use wirelab_model::study::{Factor, Study};
use wirelab_model::units::Share;

use crate::error::StudyError;
use crate::factor::{NOT_SCALAR, is_scalar, keys, keys_of, level_name, level_names, one_setting};
use crate::limits::{MAX_BLOCKS, MAX_CELLS, MAX_ENTRIES, MAX_FACTORS, MAX_NAME, MAX_PRESETS, MOST_BESIDE};
use crate::link;
use crate::locate::{Step, steps};
use crate::own;
use crate::preset::{DEFAULT_PRESET, with_preset};
use crate::ranges::out_of_range;
use crate::selectors;
use crate::timeline;
use crate::words::{nearest, one_of};

type Checked = Result<(), StudyError>;

/// Checks a study as it is written, with all its presets.
pub(crate) fn written(study: &Study) -> Checked {
    study_name(&study.name)?;
    for (list, entries) in [
        ("exclude", study.exclude.len()),
        ("adjust", study.adjust.len()),
        ("figures", study.figures.len()),
        ("claims", study.claims.len()),
        ("require", study.require.len()),
        ("published", study.published.len()),
        ("placements", study.placements.len()),
    ] {
        at_most(MAX_ENTRIES, entries, list)?;
    }
    at_most(MAX_PRESETS, study.presets.len(), "presets")?;
    own::check(&study.requests)?;
    resolved(study)?;
    // Presets do not change these parts; without them, many presets are cheap to apply.
    let base = Study {
        exclude: Vec::new(),
        figures: Vec::new(),
        claims: Vec::new(),
        require: Vec::new(),
        published: Vec::new(),
        presets: IndexMap::new(),
        ..study.clone()
    };
    for (name, preset) in &study.presets {
        let place = steps!["presets", name];
        at_most(MAX_ENTRIES, preset.exclude.as_ref().map_or(0, Vec::len), "presets")?;
        label("preset", name).map_err(|error| error.at_key(place.clone()))?;
        if name == DEFAULT_PRESET {
            let message = format!("`{name}` stands for the study as it is written; give this preset another name");
            return Err(StudyError::new(message).at_key(place));
        }
        parts(&preset.workload, &preset.factors, &place)?;
        let merged = with_preset(base.clone(), preset);
        whole(&merged).map_err(|error| error.when(&format!("with the preset `{name}`")).at_key(place))?;
    }
    selectors::check(study)
}

/// Checks a study after preset and command line are applied. Selectors may name levels that no longer exist.
pub(crate) fn resolved(study: &Study) -> Checked {
    parts(&study.workload, &study.factors, &[])?;
    whole(study)
}

fn at_most(most: usize, entries: usize, list: &str) -> Checked {
    if entries <= most {
        return Ok(());
    }
    Err(StudyError::new(format!("{entries} entries, at most {most}")).at_key(steps![list]))
}

/// Checks a study name: lower-case letters, digits and hyphens, because it becomes part of file names.
fn study_name(name: &str) -> Checked {
    let valid = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if !name.is_empty() && name.len() <= MAX_NAME && name.chars().all(valid) {
        return Ok(());
    }
    let fixed: String = name.to_lowercase().chars().map(|c| if valid(c) { c } else { '-' }).take(MAX_NAME).collect();
    let fixed = Some(fixed.trim_matches('-').to_owned()).filter(|fixed| !fixed.is_empty());
    let message = format!("`{name}` is not a study's name: lower-case letters, digits and hyphens, up to {MAX_NAME}");
    Err(StudyError::new(message).meant(fixed).at(steps!["name"]))
}

/// Checks a display name: reports show it, and users type it on command lines.
pub(crate) fn label(what: &str, name: &str) -> Checked {
    if name.trim().is_empty() || name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
        let message = format!("the name of a {what} has 1 to {MAX_NAME} characters, none of them a control character");
        return Err(StudyError::new(message));
    }
    Ok(())
}

/// Checks the workload and each factor in isolation; `prefix` is the path of their table.
fn parts(workload: &Settings, factors: &IndexMap<String, Factor>, prefix: &[Step]) -> Checked {
    let below = |path: &[Step]| [prefix, path].concat();
    if let Some((key, message)) = out_of_range(workload) {
        return Err(StudyError::new(message).at(below(&steps!["workload", key])));
    }
    if factors.len() > MAX_FACTORS {
        let message = format!("the study has {} factors, at most {MAX_FACTORS}", factors.len());
        return Err(StudyError::new(message).at_key(below(&steps!["factors"])));
    }
    for (name, factor) in factors {
        let place = below(&steps!["factors", name]);
        label("factor", name).map_err(|error| error.at_key(place.clone()))?;
        match factor {
            Factor::Values(values) => self::values(name, values, &place)?,
            Factor::Levels(levels) => named_levels(name, levels, &place)?,
        }
    }
    Ok(())
}

fn empty_factor(name: &str, place: &[Step]) -> StudyError {
    StudyError::new(format!("the factor `{name}` has no levels; give it at least one, or remove it")).at(place.to_vec())
}

/// A factor that is a list of values of the setting of its name.
fn values(name: &str, values: &[serde_json::Value], place: &[Step]) -> Checked {
    let known = Settings::keys();
    if !known.iter().any(|key| key == name) {
        let message = format!(
            "unknown factor `{name}`: a list of values varies the setting of that name, but no setting has this name. \
             For a factor of your own, name its levels and their settings: \
             `{name} = {{ few = {{ workers = 1 }}, many = {{ workers = 10 }} }}`"
        );
        let meant = nearest(name, known.iter().map(String::as_str));
        return Err(StudyError::new(message).meant(meant).at_key(place.to_vec()));
    }
    if values.is_empty() {
        return Err(empty_factor(name, place));
    }
    if values.len() > MAX_CELLS {
        return Err(too_many_cells(values.len()).at_key(place.to_vec()));
    }
    // Keyed by the resulting setting, so that `1 KiB` and `1024 B` count as one level.
    let mut seen: HashMap<String, String> = HashMap::new();
    for (index, value) in values.iter().enumerate() {
        let here = || [place, &steps![index]].concat();
        if !is_scalar(value) {
            return Err(StudyError::new(format!("this is no level of `{name}`: {NOT_SCALAR}")).at(here()));
        }
        let settings = one_setting(name, value).map_err(|(message, meant)| {
            StudyError::new(format!("`{}` is no level of `{name}`: {message}", level_name(value)))
                .meant(meant)
                .at(here())
        })?;
        let level = level_name(value);
        label("level", &level).map_err(|error| error.at(here()))?;
        if let Some((_, message)) = out_of_range(&settings) {
            return Err(StudyError::new(message).at(here()));
        }
        let meaning = serde_json::to_string(&settings).unwrap_or_default();
        if let Some(first) = seen.insert(meaning, level.clone()) {
            let message = if first == level {
                format!("the factor `{name}` has the level `{level}` twice")
            } else {
                format!("the levels `{first}` and `{level}` of `{name}` are the same value")
            };
            return Err(StudyError::new(message).at(here()));
        }
    }
    Ok(())
}

/// A factor that is a table of named levels.
fn named_levels(name: &str, levels: &IndexMap<String, Settings>, place: &[Step]) -> Checked {
    if levels.is_empty() {
        return Err(empty_factor(name, place));
    }
    for (level, settings) in levels {
        let here = [place, &steps![level]].concat();
        label("level", level).map_err(|error| error.at_key(here.clone()))?;
        if let Some((key, message)) = out_of_range(settings) {
            return Err(StudyError::new(message).at([&here[..], &steps![key]].concat()));
        }
    }
    Ok(())
}

/// Checks the settings of adjustments. An adjustment must not set a factor that is a list of values: its level names
/// would become wrong.
fn adjustments(study: &Study) -> Checked {
    for (index, adjustment) in study.adjust.iter().enumerate() {
        if let Some((key, message)) = out_of_range(&adjustment.set) {
            return Err(StudyError::new(message).at(steps!["adjust", index, "set", key]));
        }
        let set = keys(&adjustment.set);
        if set.is_empty() {
            let message = "this adjustment sets nothing; say what in `set`, for example `set = { workers = 1 }`";
            return Err(StudyError::new(message).at(steps!["adjust", index, "set"]));
        }
        let is_list = |key: &&String| matches!(study.factors.get(*key), Some(Factor::Values(_)));
        if let Some(key) = set.iter().find(is_list) {
            let message = format!("`{key}` is a factor, and this adjustment would replace its levels; remove it here");
            return Err(StudyError::new(message).at_key(steps!["adjust", index, "set", key]));
        }
    }
    Ok(())
}

/// Checks how the parts of a study fit together.
fn whole(study: &Study) -> Checked {
    let cells = study.factors.values().fold(1usize, |cells, factor| cells.saturating_mul(level_names(factor).len()));
    if cells > MAX_CELLS {
        return Err(too_many_cells(cells).at_key(steps!["factors"]));
    }
    overlaps(study)?;
    let varied = |factor: &Factor| match factor {
        Factor::Values(_) => false,
        Factor::Levels(levels) => levels.values().all(|level| level.protocol.is_some()),
    };
    let has_protocol = study.workload.protocol.is_some()
        || study.factors.contains_key("protocol")
        || study.factors.values().any(varied);
    if !has_protocol {
        let message = "no protocol: fix it in `[workload]` (`protocol = \"h2\"`) or vary it in `[factors]` \
                       (`protocol = [\"h1\", \"h2\"]`)";
        return Err(StudyError::new(message).at_key(steps!["factors"]));
    }
    adjustments(study)?;
    link::check(&study.placements)?;
    study.timeline.as_ref().map_or(Ok(()), timeline::check)?;
    beside(study)?;
    blocks(study)?;
    compare(study)
}

fn too_many_cells(cells: usize) -> StudyError {
    StudyError::new(format!("the factors make {cells} cells, at most {MAX_CELLS}; use fewer factors or levels"))
}

/// A key may be set in one place only, otherwise one value would hide the other. A level may replace a setting of the
/// workload.
fn overlaps(study: &Study) -> Checked {
    for (name, factor) in &study.factors {
        if matches!(factor, Factor::Values(_)) && keys(&study.workload).contains(name) {
            let message = format!("`{name}` is fixed in `[workload]` and varied in `[factors]`; remove one of them");
            return Err(StudyError::new(message).at_key(steps!["workload", name]));
        }
    }
    let mut owners: HashMap<String, &String> = HashMap::new();
    for (name, factor) in &study.factors {
        let own = keys_of(name, factor);
        for key in own.keys() {
            let other = if key == "duration" { "requests" } else { "duration" };
            let exclusive = key == "requests" || key == "duration";
            let owner = owners.get(key).or_else(|| owners.get(other).filter(|_| exclusive));
            if let Some(owner) = owner {
                let message =
                    format!("the factors `{owner}` and `{name}` both set `{key}`, so one would hide the other");
                return Err(StudyError::new(message).at_key(steps!["factors", name]));
            }
        }
        owners.extend(own.into_keys().map(|key| (key, name)));
    }
    Ok(())
}

fn compare(study: &Study) -> Checked {
    let compare = &study.compare;
    let Some(factor) = study.factors.get(&compare.factor) else {
        let known: Vec<_> = study.factors.keys().collect();
        let message = format!("the study has no factor `{}` to compare, only {}", compare.factor, one_of(&known));
        let meant = nearest(&compare.factor, known.iter().map(|name| name.as_str()));
        return Err(StudyError::new(message).meant(meant).at(steps!["compare", "factor"]));
    };
    let levels = level_names(factor);
    if !levels.contains(&compare.baseline) {
        let message = format!(
            "the baseline `{}` is not a level of `{}`, which has {}",
            compare.baseline,
            compare.factor,
            one_of(&levels)
        );
        let meant = nearest(&compare.baseline, levels.iter().map(String::as_str));
        return Err(StudyError::new(message).meant(meant).at(steps!["compare", "baseline"]));
    }
    if compare.metrics.is_empty() {
        let message = "no metrics to compare; name at least one, for example `response_median`";
        return Err(StudyError::new(message).at(steps!["compare", "metrics"]));
    }
    for (index, metric) in compare.metrics.iter().enumerate() {
        if compare.metrics[..index].contains(metric) {
            let message = format!("the metric `{metric}` is listed twice");
            return Err(StudyError::new(message).at(steps!["compare", "metrics", index]));
        }
    }
    for (index, metric) in compare.primary.iter().enumerate() {
        if !compare.metrics.contains(metric) {
            let message =
                format!("the primary metric `{metric}` is not one of `metrics`: {}", one_of(&compare.metrics));
            let meant = nearest(metric, compare.metrics.iter().map(String::as_str));
            return Err(StudyError::new(message).meant(meant).at(steps!["compare", "primary", index]));
        }
    }
    if !compare.is_primary(&compare.metrics[0]) {
        let message = format!(
            "the first metric, `{}`, decides when the study ends, and so has to be primary; add it to `primary`",
            compare.metrics[0]
        );
        return Err(StudyError::new(message).at(steps!["compare", "primary"]));
    }
    share(compare.margin, "compare", "margin")
}

/// The shares of the time for trials beside the plan.
fn beside(study: &Study) -> Checked {
    let shares = [("planted", study.planted, "planted effects"), ("references", study.references, "null references")];
    for (key, share, what) in shares {
        if !(0.0..=MOST_BESIDE.0).contains(&share.0) {
            let message = format!(
                "`{key}` is {share}, but must be from 0 % (no {what}) to {MOST_BESIDE} of the time of all trials"
            );
            return Err(StudyError::new(message).at(steps![key]));
        }
    }
    let both = study.planted.0 + study.references.0;
    if both > MOST_BESIDE.0 {
        let message = format!("`planted` and `references` are {} together, but at most {MOST_BESIDE}", Share(both));
        return Err(StudyError::new(message).at(steps!["references"]));
    }
    Ok(())
}

fn blocks(study: &Study) -> Checked {
    let blocks = &study.blocks;
    if blocks.min == 0 {
        let message = "`min` is 0, but a comparison needs at least 1 block, and a verdict at least 10";
        return Err(StudyError::new(message).at(steps!["blocks", "min"]));
    }
    if blocks.min > blocks.max {
        let message = format!("at least {} blocks (`min`), but at most {} (`max`)", blocks.min, blocks.max);
        return Err(StudyError::new(message).at(steps!["blocks", "max"]));
    }
    if blocks.max > MAX_BLOCKS {
        let message = format!("`max` is {}, but must be at most {MAX_BLOCKS}", blocks.max);
        return Err(StudyError::new(message).at(steps!["blocks", "max"]));
    }
    if blocks.give_up_after == Some(0) {
        let message =
            "`give_up_after` is 0, but a cell has to be tried at least once; leave it out to never give one up";
        return Err(StudyError::new(message).at(steps!["blocks", "give_up_after"]));
    }
    share(blocks.precision, "blocks", "precision")
}

fn share(share: Share, table: &str, key: &str) -> Checked {
    if share.0 > 0.0 && share.0 < 1.0 {
        return Ok(());
    }
    let message = format!("`{key}` is {share}, but must be above 0 % and below 100 %");
    Err(StudyError::new(message).at(steps![table, key]))
}
