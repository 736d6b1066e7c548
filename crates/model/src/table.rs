//! Imported measurements: the facts about their table that a report shows in place of a run's record.

use serde::{Deserialize, Serialize};

/// A table of measurements, and the interpretation of its columns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Table {
    /// The file name as given.
    pub file: String,
    /// Number of rows below the heading.
    pub rows: u32,
    /// Number of imported values over all metrics.
    pub observations: u32,
    /// The relation between observations.
    pub design: Design,
    /// The interpretation of each column.
    pub taken: Vec<Taken>,
    /// Content of the file that the statistics omit, with the reason; one sentence each.
    pub left_out: Vec<String>,
}

/// The source of a part of the analysis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    /// The part, for example `factor`.
    pub what: String,
    /// The source, for example ``the column `protocol` ``.
    pub from: String,
    /// Whether wirelab guessed the source because the user did not name it.
    pub guessed: bool,
}

/// The relation between observations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Design {
    /// Observations form blocks, measured together: cells are compared within blocks.
    #[default]
    Blocks,
    /// Observations are independent, and cells may have different numbers of them.
    Independent,
}

impl Design {
    /// The counted unit, in the plural.
    #[must_use]
    pub const fn counted(self) -> &'static str {
        match self {
            Self::Blocks => "blocks",
            Self::Independent => "observations",
        }
    }
}
