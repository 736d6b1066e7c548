//! Presets: named variants of a study.

use wirelab_model::study::{Preset, Study};

use crate::factor::overlaid;

/// Name of the study as written, without a preset.
pub const DEFAULT_PRESET: &str = "default";

/// Applies one preset.
pub(crate) fn with_preset(mut study: Study, preset: &Preset) -> Study {
    study.lab = preset.lab.clone().unwrap_or(study.lab);
    study.limits = preset.limits.clone().or(study.limits);
    study.workload = overlaid(&study.workload, &preset.workload);
    for (name, factor) in &preset.factors {
        study.factors.insert(name.clone(), factor.clone());
    }
    study.exclude = preset.exclude.clone().unwrap_or(study.exclude);
    let explicit =
        ExplicitBounds { min: preset.min_blocks.is_some(), max: preset.max_blocks.is_some(), compared: None };
    study.blocks.min = preset.min_blocks.unwrap_or(study.blocks.min);
    study.blocks.max = preset.max_blocks.unwrap_or(study.blocks.max);
    study.blocks.budget = preset.budget.or(study.blocks.budget);
    explicit.reconcile(&mut study);
    study
}

/// Parameters that preset or command line set explicitly.
#[derive(Default)]
pub(crate) struct ExplicitBounds {
    /// Whether the minimum number of blocks is set.
    pub min: bool,
    /// Whether the maximum number of blocks is set.
    pub max: bool,
    /// The `--set` that replaced the levels of the compared factor.
    pub compared: Option<String>,
}

impl ExplicitBounds {
    /// Where the two bounds of `blocks` contradict each other, moves the unset bound to the set one.
    pub fn reconcile(&self, study: &mut Study) {
        let blocks = &mut study.blocks;
        match (self.min, self.max) {
            (false, true) => blocks.min = blocks.min.min(blocks.max),
            (true, false) => blocks.max = blocks.max.max(blocks.min),
            _ => {}
        }
    }
}
