//! Upper limits for a study. Larger files are refused before they are processed, so that they exhaust neither time
//! nor memory.

use wirelab_model::units::Share;

/// Size of a study file, in bytes.
pub const MAX_TEXT: usize = 1 << 20;

/// Combinations of levels, before exclusions and without A/A twins.
pub const MAX_CELLS: usize = 10_000;

/// Factors per study.
pub(crate) const MAX_FACTORS: usize = 32;

/// Presets per study.
pub(crate) const MAX_PRESETS: usize = 100;

/// Entries in each of the lists `exclude`, `claims` and `published`.
pub(crate) const MAX_ENTRIES: usize = 1000;

/// Blocks. With [`MAX_CELLS`] and one twin per cell, trial numbers stay below 2^32.
pub(crate) const MAX_BLOCKS: u32 = 100_000;

/// Share of the time of all trials for planted effects, and for null references.
pub(crate) const MOST_BESIDE: Share = Share(0.9);

/// Characters in the name of a study, factor, level or preset.
pub(crate) const MAX_NAME: usize = 100;

/// Actions, and windows, of a timeline.
pub(crate) const MAX_ACTIONS: usize = 50;
