//! Compared cells that differ in what is in force, though the study does not vary it.

use indexmap::IndexMap;
use serde_json::Value;
use wirelab_model::journal::TrialRecord;
use wirelab_model::plan::{Cell, Plan};
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
            let values = match by_levels(&[&study.compare.factor], plan, &facts, key) {
                Some(values) => values.into_iter().collect(),
                None => by_cell(study, plan, &facts, key, &cells),
            };
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

/// The values of a fact by the levels of these factors, if in the whole plan they alone decide.
fn by_levels(
    factors: &[&str],
    plan: &Plan,
    facts: &[IndexMap<String, String>],
    key: &str,
) -> Option<IndexMap<String, String>> {
    let mut by_levels: IndexMap<String, String> = IndexMap::new();
    for (cell, facts) in plan.cells.iter().zip(facts) {
        let Some(value) = facts.get(key) else { continue };
        if by_levels.entry(label(factors, cell)).or_insert_with(|| value.clone()) != value {
            return None;
        }
    }
    Some(by_levels)
}

/// The levels that a cell has of these factors: `protocol=h2 server=nginx`.
fn label(factors: &[&str], cell: &Cell) -> String {
    let levels = cell.levels.iter().filter(|(factor, _)| factors.contains(&factor.as_str()));
    levels.map(|(factor, level)| format!("{factor}={level}")).collect::<Vec<_>>().join(" ")
}

/// The values of a fact in cells that differ in it, by the compared factor and one other if these decide, otherwise cell by cell.
fn by_cell(
    study: &Study,
    plan: &Plan,
    facts: &[IndexMap<String, String>],
    key: &str,
    cells: &[usize],
) -> Vec<(String, String)> {
    let compared = study.compare.factor.as_str();
    let others = study.factors.keys().map(String::as_str).filter(|factor| *factor != compared);
    for factors in others.map(|other| [other, compared]) {
        if let Some(mut values) = by_levels(&factors, plan, facts, key) {
            let differing: Vec<_> = cells.iter().map(|cell| label(&factors, &plan.cells[*cell])).collect();
            values.retain(|label, _| differing.contains(label));
            return values.into_iter().collect();
        }
    }
    cells.iter().map(|cell| (plan.cells[*cell].label(), facts[*cell][key].clone())).collect()
}

#[cfg(test)]
#[path = "parity_tests.rs"]
mod tests;
