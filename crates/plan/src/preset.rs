//! Presets: variants of a study that its file names.

use wirelab_model::study::{Preset, Study};

use crate::factor::overlaid;

/// The preset that is the study as it is written.
pub const DEFAULT_PRESET: &str = "default";

/// The study with one of its presets applied.
pub(crate) fn with_preset(mut study: Study, preset: &Preset) -> Study {
    study.lab = preset.lab.clone().unwrap_or(study.lab);
    study.limits = preset.limits.clone().or(study.limits);
    study.workload = overlaid(&study.workload, &preset.workload);
    for (name, factor) in &preset.factors {
        study.factors.insert(name.clone(), factor.clone());
    }
    study.exclude = preset.exclude.clone().unwrap_or(study.exclude);
    let asked = Asked { min: preset.min_blocks.is_some(), max: preset.max_blocks.is_some(), compared: None };
    study.blocks.min = preset.min_blocks.unwrap_or(study.blocks.min);
    study.blocks.max = preset.max_blocks.unwrap_or(study.blocks.max);
    study.blocks.budget = preset.budget.or(study.blocks.budget);
    asked.reconcile(&mut study);
    study
}

/// What was asked for explicitly.
#[derive(Default)]
pub(crate) struct Asked {
    /// The least number of blocks.
    pub min: bool,
    /// The greatest.
    pub max: bool,
    /// The `--set` that replaced the levels of the compared factor.
    pub compared: Option<String>,
}

impl Asked {
    /// Bends the bound that was not asked for to the one that was.
    pub fn reconcile(&self, study: &mut Study) {
        let blocks = &mut study.blocks;
        match (self.min, self.max) {
            (false, true) => blocks.min = blocks.min.min(blocks.max),
            (true, false) => blocks.max = blocks.max.max(blocks.min),
            _ => {}
        }
    }
}
