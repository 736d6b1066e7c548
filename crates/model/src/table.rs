//! Measurements that wirelab did not make: what a report says of the table that they came from, in the place of a run's record.

use serde::{Deserialize, Serialize};

/// A table of measurements, and what its columns were taken for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The file, as it was named.
    pub file: String,
    /// Rows below the heading.
    pub rows: u32,
    /// Numbers that were taken, over all metrics.
    pub observations: u32,
    /// Which observations belong together.
    pub design: Design,
    /// What each column was taken for, in words.
    pub taken: Vec<Taken>,
    /// What is in the file and not in the statistics, with the reason; each a sentence.
    pub left_out: Vec<String>,
}

/// What a part of the analysis was taken from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// What for, for example `factor`.
    pub what: String,
    /// From what, for example ``the column `protocol` ``.
    pub from: String,
    /// Whether nobody said so: it was the obvious choice.
    pub guessed: bool,
}

/// Which observations belong together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Those of one block, which were made together: cells are compared within blocks.
    #[default]
    Blocks,
    /// None: each stands by itself, and cells may have different numbers of them.
    Independent,
}

impl Design {
    /// What is counted, in the plural.
    #[must_use]
    pub const fn counted(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Independent => "observations",
        }
    }
}
