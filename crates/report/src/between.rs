//! Two runs side by side: changes of cells, A/A pairs, and differences of settings and machines.

mod page;
mod terminal;

use serde::Serialize;
use serde_json::{Value, json};
use wirelab_model::difference::{Difference, differences};
use wirelab_model::manifest::Manifest;
use wirelab_model::metric::Metric;
use wirelab_model::requirement::Limit;
use wirelab_stats::analysis::{CannotTell, RequirementVerdict, Requiring};
use wirelab_stats::between::{Between, Change, RequiredChange};

use crate::numbers::{NBSP, change_with};
use crate::words::{phrase, upper_first};

pub use page::between_html;
pub use terminal::between_terminal;

/// The version of the form of the JSON. It grows if a key is removed or changes its meaning.
const SCHEMA_VERSION: u32 = 1;

/// The caveat of every comparison of two runs, which no test removes.
const CAVEAT: &str = "The runs were not interleaved: a change of the machine between them looks like a change of the \
                      server. To be sure, measure both in one run, with `wirelab ab` or as two levels of a factor.";

/// Two runs and their comparison.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// The names of the run folders.
    pub names: [&'a str; 2],
    pub manifests: [&'a Manifest; 2],
    /// Whether each run has reached its planned end.
    pub ended: [bool; 2],
    /// The comparison.
    pub between: &'a Between,
    /// The declarations of the metrics of both runs.
    pub metrics: &'a [&'a Metric],
    /// The margin of equivalence.
    pub margin: f64,
}

impl Sides<'_> {
    fn metric(&self, name: &str) -> Option<&Metric> {
        self.metrics.iter().copied().find(|metric| metric.name == name)
    }

    /// The title of a metric within a sentence.
    fn title(&self, name: &str) -> String {
        self.metric(name).map_or_else(|| name.to_owned(), |metric| phrase(metric.title))
    }

    /// The label of a cell; `all` for the only cell of a study without factors.
    fn label(&self, pair: usize) -> &str {
        match self.between.pairs[pair].label.as_str() {
            "" => "all",
            label => label,
        }
    }

    /// Conditions of the runs that differ: machine, lab, observers, study, and endpoints.
    fn conditions(&self) -> Vec<Difference> {
        #[derive(Serialize)]
        struct Conditions {
            study: String,
            lab: String,
            observers: String,
            set: String,
            endpoints: Value,
        }
        let of = |manifest: &Manifest| Conditions {
            study: manifest.study.name.clone(),
            lab: manifest.lab.clone(),
            observers: manifest.observers.join(", "),
            set: manifest.set.join(", "),
            endpoints: manifest
                .endpoints
                .iter()
                .map(|(name, record)| {
                    let digest: String = record.digest.chars().take(12).collect();
                    (name.clone(), json!({ "version": record.description.version, "program": digest }))
                })
                .collect(),
        };
        let [first, second] = self.manifests;
        let mut found = differences(&of(first), &of(second));
        found.extend(differences(&first.environment, &second.environment));
        found
    }
}

/// The comparison as a JSON object.
///
/// # Panics
/// Never: every part has string keys and finite numbers.
#[must_use]
pub fn between_json(sides: &Sides) -> String {
    let run = |side: usize| {
        let manifest = sides.manifests[side];
        json!({
            "run": sides.names[side], "created": manifest.created, "study": manifest.study.name,
            "ended": sides.ended[side],
        })
    };
    let alone = |side: usize| -> Vec<String> {
        sides.between.alone[side].iter().map(|cell| sides.manifests[side].plan.cells[*cell].label()).collect()
    };
    let document = json!({
        "schema_version": SCHEMA_VERSION,
        "runs": [run(0), run(1)],
        "caveat": CAVEAT,
        "margin": sides.margin,
        "requirements": sides.between.requirements,
        "pairs": sides.between.pairs,
        "alone": [alone(0), alone(1)],
        "changes": sides.between.changes,
        "floors": sides.between.floors,
        "conditions": sides.conditions(),
    });
    let mut text = serde_json::to_string_pretty(&document).expect("every part has string keys");
    text.push('\n');
    text
}

/// The requirements that the second run does not meet, a sentence each; with `inconclusive` also those without a
/// verdict.
#[must_use]
pub fn failed_changes(sides: &Sides, inconclusive: bool) -> Vec<String> {
    let fails = |result: &&RequiredChange| match result.verdict {
        RequirementVerdict::Met => false,
        RequirementVerdict::NotMet => true,
        RequirementVerdict::CannotTell { .. } => inconclusive,
    };
    sides.between.requirements.iter().filter(fails).map(|one| required(sides, one).replace(NBSP, " ")).collect()
}

/// `Not met: P99 response time no more than 5 % worse than the first run: protocol=h1 +8.1 % [+7.0, +9.2].`
fn required(sides: &Sides, result: &RequiredChange) -> String {
    let Limit::NoWorse { by, .. } = &result.that.limit else { return String::new() };
    let is_decisive = |test: &&Requiring| same_kind(test.verdict, result.verdict);
    let cell = |test: &Requiring| {
        let pair = sides.between.pairs.iter().position(|pair| pair.cells[1] == test.cell);
        let size =
            test.size.map_or_else(String::new, |ratio| format!(" {}", change_with(ratio, test.interval.as_ref())));
        let why = match test.verdict {
            RequirementVerdict::CannotTell { why } => format!(" ({})", reason(why)),
            _ => String::new(),
        };
        format!("{}{size}{why}", pair.map_or("?", |pair| sides.label(pair)))
    };
    let decisive: Vec<_> = result.tests.iter().filter(is_decisive).map(cell).collect();
    let word = match result.verdict {
        RequirementVerdict::Met => "met",
        RequirementVerdict::NotMet => "not met",
        RequirementVerdict::CannotTell { .. } => "inconclusive",
    };
    let title = sides.title(&result.that.metric);
    upper_first(&format!("{word}: {title} no more than {by} worse than the first run: {}.", decisive.join("; ")))
}

const fn same_kind(one: RequirementVerdict, other: RequirementVerdict) -> bool {
    matches!(
        (one, other),
        (RequirementVerdict::Met, RequirementVerdict::Met)
            | (RequirementVerdict::NotMet, RequirementVerdict::NotMet)
            | (RequirementVerdict::CannotTell { .. }, RequirementVerdict::CannotTell { .. })
    )
}

/// Why a change has no verdict.
const fn reason(why: CannotTell) -> &'static str {
    match why {
        CannotTell::TooFewBlocks => "too few trials",
        CannotTell::TooNoisy => "too noisy",
        CannotTell::Correction => "not significant after correction",
        CannotTell::NoiseFloor => "an A/A pair differs as much",
        CannotTell::NotEnded => "the run has not ended",
        CannotTell::NoValues => "no values",
        CannotTell::UnequalFailures => "one run fails more",
        CannotTell::ClientBound => "the client's own time may explain it",
    }
}

/// The changes of a metric.
fn of_metric<'a>(sides: &Sides<'a>, metric: &str) -> Vec<&'a Change> {
    sides.between.changes.iter().filter(|change| change.metric == metric).collect()
}
