//! How large a study may be. A file that is far beyond any sensible study is refused at once, before anything is built
//! of it, so that neither time nor memory can run out.

/// Bytes of a study file.
pub const MAX_TEXT: usize = 1 << 20;

/// Combinations of levels, before exclusions and without the A/A twins.
pub const MAX_CELLS: usize = 10_000;

/// Factors of a study.
pub(crate) const MAX_FACTORS: usize = 32;

/// Presets of a study.
pub(crate) const MAX_PRESETS: usize = 100;

/// Entries of each of the lists `exclude`, `claims` and `published`.
pub(crate) const MAX_ENTRIES: usize = 1000;

/// Blocks. With [`MAX_CELLS`], each with a twin, trial numbers stay below 2^32.
pub(crate) const MAX_BLOCKS: u32 = 100_000;

/// Characters of the name of a study, factor, level or preset.
pub(crate) const MAX_NAME: usize = 100;

/// Actions of a timeline, and its windows.
pub(crate) const MAX_ACTIONS: usize = 50;

/// Clients of a trial, those that were restarted included: each is a process.
pub(crate) const MAX_CLIENTS: usize = 500;
