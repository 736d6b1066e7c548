//! Compared cells that differ in what is in force, though the study does not vary it.

use indexmap::IndexMap;
use serde_json::Value;
use wirelab_model::journal::TrialRecord;
use wirelab_model::plan::Plan;
use wirelab_model::study::{Factor, Study};
use wirelab_model::warning::Warning;

use crate::trials::Trials;

/// Facts that belong to what the cells are, or to the trial, and say nothing of a missing parity.
const INTRINSIC: [&str; 2] = ["alpn", "port"];

/// A side's name and its facts in a record.
type Side = (&'static str, fn(&TrialRecord) -> &IndexMap<String, Value>);

/// One warning per fact that both compared cells report differently, and that no factor of the study explains.
pub fn parity(study: &Study, plan: &Plan, trials: &Trials<'_>) -> Vec<Warning> {
    let explained = explained(study);
    let sides: [Side; 2] = [("server", |record| &record.server), ("client", |record| &record.client)];
    let mut warnings = Vec::new();
    for (side, facts_of) in sides {
        let facts: Vec<_> = (0..plan.cells.len()).map(|cell| facts(trials.ok(cell).map(facts_of))).collect();
        let mut differing: IndexMap<&str, Vec<usize>> = IndexMap::new();
        for comparison in plan.comparisons.iter().filter(|comparison| !comparison.aa) {
            for (key, value) in &facts[comparison.cell] {
                let baseline = facts[comparison.baseline].get(key);
                let known = INTRINSIC.contains(&key.as_str()) || explained.contains(key);
                if known || baseline.is_none_or(|other| other == value) {
                    continue;
                }
                let cells = differing.entry(key).or_default();
                for cell in [comparison.baseline, comparison.cell] {
                    if !cells.contains(&cell) {
                        cells.push(cell);
                    }
                }
            }
        }
        for (key, cells) in differing {
            let values = by_level(study, plan, &facts, key).unwrap_or_else(|| {
                cells.iter().map(|cell| (plan.cells[*cell].label(), facts[*cell][key].clone())).collect()
            });
            warnings.push(Warning::Parity { what: format!("{side} {key}"), values });
        }
    }
    warnings
}

/// The keys that the study varies: a factor of that name, or a setting that a named level sets.
fn explained(study: &Study) -> Vec<String> {
    let mut keys: Vec<String> = study.factors.keys().cloned().collect();
    for factor in study.factors.values() {
        let Factor::Levels(levels) = factor else { continue };
        for settings in levels.values() {
            if let Ok(Value::Object(set)) = serde_json::to_value(settings) {
                keys.extend(set.into_iter().map(|(key, _)| key));
            }
        }
    }
    keys
}

/// What a cell's trials say of each fact; differing values of several trials are listed.
fn facts<'a>(maps: impl Iterator<Item = &'a IndexMap<String, Value>>) -> IndexMap<String, String> {
    let mut seen: IndexMap<&str, Vec<String>> = IndexMap::new();
    for (key, value) in maps.flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let values = seen.entry(key).or_default();
        if !values.contains(&text) {
            values.push(text);
        }
    }
    let joined = seen.into_iter().map(|(key, mut values)| {
        values.sort();
        (key.to_owned(), values.join(" or "))
    });
    joined.collect()
}

/// The values of a fact by level of the compared factor, if in the whole plan the level alone decides.
fn by_level(
    study: &Study,
    plan: &Plan,
    facts: &[IndexMap<String, String>],
    key: &str,
) -> Option<Vec<(String, String)>> {
    let factor = &study.compare.factor;
    let mut by_level: IndexMap<&str, &str> = IndexMap::new();
    for (cell, facts) in plan.cells.iter().zip(facts) {
        let Some(value) = facts.get(key) else { continue };
        if by_level.entry(cell.levels.get(factor)?).or_insert(value) != value {
            return None;
        }
    }
    Some(by_level.iter().map(|(level, value)| (format!("{factor}={level}"), (*value).to_owned())).collect())
}

#[cfg(test)]
#[path = "parity_tests.rs"]
mod tests;
