//! Parity: effective settings that differ between compared cells although the study does not vary them.

use indexmap::IndexMap;
use serde_json::{Map, Value};
use wirelab_model::journal::TrialRecord;
use wirelab_model::plan::{Cell, Job, Plan};
use wirelab_model::study::{Factor, Study};
use wirelab_model::warning::Warning;

use crate::trials::Trials;

/// Facts that define the cells or the trial; their differences are no lack of parity.
const INTRINSIC: [&str; 2] = ["alpn", "port"];

/// Facts that follow from a setting of another name.
const CONSEQUENCES: [(&str, &str); 2] =
    [("initial_udp_payload", "max_udp_payload"), ("udp_payload", "max_udp_payload")];

/// One end of a trial.
struct Side {
    name: &'static str,
    facts: fn(&TrialRecord) -> &IndexMap<String, Value>,
    endpoint: fn(&Job) -> Option<&String>,
}

const SIDES: [Side; 2] = [
    Side { name: "server", facts: |record| &record.server, endpoint: Job::server },
    Side { name: "client", facts: |record| &record.client, endpoint: |job| Some(&job.client) },
];

/// One warning per fact that differs between compared cells and that no factor of the study explains.
pub fn parity(study: &Study, plan: &Plan, trials: &Trials<'_>) -> Vec<Warning> {
    let varied = Varied::by(study);
    let mut warnings = Vec::new();
    for side in SIDES {
        let facts: Vec<_> = (0..plan.cells.len()).map(|cell| facts(trials.ok(cell).map(side.facts))).collect();
        let mut differing: IndexMap<&str, Vec<usize>> = IndexMap::new();
        for comparison in plan.comparisons.iter().filter(|comparison| !comparison.aa) {
            let cells = [comparison.baseline, comparison.cell];
            let compared = cells.map(|cell| &plan.cells[cell]);
            for (key, value) in &facts[comparison.cell] {
                let baseline = facts[comparison.baseline].get(key);
                let cause =
                    CONSEQUENCES.iter().find(|(fact, _)| fact == key).map_or(key.as_str(), |(_, setting)| setting);
                let known = INTRINSIC.contains(&key.as_str()) || varied.explains(cause, compared, side.endpoint);
                if known || baseline.is_none_or(|other| other == value) {
                    continue;
                }
                let seen = differing.entry(key).or_default();
                for cell in cells {
                    if !seen.contains(&cell) {
                        seen.push(cell);
                    }
                }
            }
        }
        for (key, cells) in differing {
            let values = match by_levels(&[&study.compare.factor], plan, &facts, key) {
                Some(values) => values.into_iter().collect(),
                None => by_cell(study, plan, &facts, key, &cells),
            };
            warnings.push(Warning::Parity { what: format!("{} {key}", side.name), values });
        }
    }
    warnings
}

/// The factors of the study with the settings of their levels.
struct Varied<'a> {
    factors: &'a IndexMap<String, Factor>,
    levels: Vec<Level<'a>>,
}

/// A named level and the settings that it sets.
struct Level<'a> {
    factor: &'a str,
    name: &'a str,
    settings: Map<String, Value>,
}

impl<'a> Varied<'a> {
    fn by(study: &'a Study) -> Self {
        let mut levels = Vec::new();
        for (factor, of_factor) in &study.factors {
            let Factor::Levels(named) = of_factor else { continue };
            for (name, settings) in named {
                if let Ok(Value::Object(settings)) = serde_json::to_value(settings) {
                    levels.push(Level { factor, name, settings });
                }
            }
        }
        Self { factors: &study.factors, levels }
    }

    /// Whether a factor explains the difference: a factor has the fact's name, or levels of the cells set it. For cells
    /// with different endpoints both levels must set it: a setting of one level alone adapts it to its endpoint and is
    /// not the compared factor.
    fn explains(&self, key: &str, cells: [&Cell; 2], endpoint: fn(&Job) -> Option<&String>) -> bool {
        let [baseline, cell] = cells.map(|cell| self.is_set(key, cell));
        let same = endpoint(&cells[0].job) == endpoint(&cells[1].job);
        self.factors.contains_key(key) || (baseline && cell) || (same && (baseline || cell))
    }

    fn is_set(&self, key: &str, cell: &Cell) -> bool {
        let is_of = |level: &&Level<'_>| cell.levels.get(level.factor).is_some_and(|name| name == level.name);
        self.levels.iter().filter(is_of).any(|level| level.settings.contains_key(key))
    }
}

/// The value of each fact in a cell's trials; several values are joined by `or`.
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

/// The values of a fact by the levels of these factors; `None` if the levels do not determine the value in the whole
/// plan.
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

/// The levels of these factors in a cell: `protocol=h2 server=nginx`.
fn label(factors: &[&str], cell: &Cell) -> String {
    let levels = cell.levels.iter().filter(|(factor, _)| factors.contains(&factor.as_str()));
    levels.map(|(factor, level)| format!("{factor}={level}")).collect::<Vec<_>>().join(" ")
}

/// The values of a fact in the differing cells: by the compared factor and another one if these determine it, otherwise
/// by cell.
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
