//! Warnings by kind, each with a single remedy.

use indexmap::IndexMap;
use wirelab_model::warning::Warning;

use crate::Input;

/// Warnings of one kind.
pub(crate) struct Group {
    /// The effect of each warning on the numbers.
    pub meanings: Vec<String>,
    pub remedy: &'static str,
}

/// The warnings of the run, its trials and the analysis, without repetition.
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
    // Every kind has its own remedy, so the remedy identifies the kind.
    let mut kinds: IndexMap<&'static str, Vec<String>> = IndexMap::new();
    for warning in all(input) {
        kinds.entry(warning.remedy()).or_default().push(warning.meaning());
    }
    kinds.into_iter().map(|(remedy, meanings)| Group { meanings, remedy }).collect()
}
