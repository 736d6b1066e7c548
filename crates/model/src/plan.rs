//! A plan: the seeded, ordered list of trials of a study.

mod flat;
mod job;
mod load;
mod target;
mod topology;
mod work;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

pub use flat::JobError;
pub use job::*;
pub use load::*;
pub use target::*;
pub use topology::*;
pub use work::*;

use crate::units::Span;

/// A resolved study, which `run` executes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// All cells; a cell's index is its number.
    pub cells: Vec<Cell>,
    /// The comparisons of the study.
    pub comparisons: Vec<Comparison>,
    /// Seed of the order within blocks and of every random choice of the endpoints.
    pub seed: u64,
    /// Minimum number of blocks before a verdict, after the sample-size rule.
    pub min_blocks: u32,
    /// Maximum number of blocks.
    pub max_blocks: u32,
    /// Time after which no new block starts, once `min_blocks` are complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Span>,
    /// Half-width of the first metric's intervals at which the study ends, as a share.
    pub precision: f64,
}

impl Plan {
    /// The first cell number that a comparison or a twin names, but the plan lacks. A plan from a file may be damaged;
    /// every other reader of a plan may use these numbers as indices.
    #[must_use]
    pub fn missing_cell(&self) -> Option<usize> {
        let compared = self.comparisons.iter().flat_map(|comparison| [comparison.cell, comparison.baseline]);
        let twins = self.cells.iter().filter_map(|cell| cell.twin_of);
        compared.chain(twins).find(|number| *number >= self.cells.len())
    }
}

/// One combination of levels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// Level by factor, in the order of the study file.
    pub levels: IndexMap<String, String>,
    /// Number of the cell that this cell repeats with the same levels, as the second half of an A/A pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin_of: Option<usize>,
    /// The job, with every default resolved.
    pub job: Job,
}

impl Cell {
    /// The levels as one line: `protocol=h2 payload=1 KiB`.
    #[must_use]
    pub fn label(&self) -> String {
        let mut words: Vec<_> = self.levels.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        if self.twin_of.is_some() {
            words.push("(A/A)".to_owned());
        }
        words.join(" ")
    }
}

/// Two cells to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Comparison {
    /// Number of the cell.
    pub cell: usize,
    /// Number of the baseline cell.
    pub baseline: usize,
    /// Whether it is an A/A pair, which differs only by noise.
    pub aa: bool,
}

/// One execution of one cell: the unit of analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// Number in the run, from 0.
    pub number: u32,
    /// Number of its block, from 0.
    pub block: u32,
    /// Position within the block, from 0.
    pub position: u32,
    /// Number of its cell.
    pub cell: usize,
    /// Seed of the random choices of its endpoints.
    pub seed: u64,
}
