//! Warnings by kind: what to do is said once, however many cells it is about.

use indexmap::IndexMap;
use wirelab_model::warning::Warning;

use crate::Input;

/// Warnings of one kind.
pub(crate) struct Group {
    /// What each means for the numbers.
    pub meanings: Vec<String>,
    /// What to do.
    pub remedy: &'static str,
}

/// What the run, its trials and the analysis have to warn of, without repetition.
pub(crate) fn all<'a>(input: &Input<'a>) -> Vec<&'a Warning> {
    let mut all: Vec<&Warning> = Vec::new();
    for warning in input.manifest.warnings.iter().chain(&input.analysis.warnings) {
        if !all.contains(&warning) {
            all.push(warning);
        }
    }
    all
}

/// The warnings of a run by kind, in the order of the first of each.
pub(crate) fn grouped(input: &Input) -> Vec<Group> {
    // Every kind has a remedy of its own, so the remedy tells the kinds apart.
    let mut kinds: IndexMap<&'static str, Vec<String>> = IndexMap::new();
    for warning in all(input) {
        kinds.entry(warning.remedy()).or_default().push(warning.meaning());
    }
    kinds.into_iter().map(|(remedy, meanings)| Group { meanings, remedy }).collect()
}
