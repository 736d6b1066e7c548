//! What the witness is told, and what it answers: one JSON line each.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use wirelab_model::network::Vantage;

use crate::packets::tally::Tally;

/// What it is told. A trial goes `Watch`, `Begin`, `End`, `Collect`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub(crate) enum Order {
    /// Look at these interfaces from now on, and at no others any more.
    Watch {
        /// Which, each with the file that gets all its frames, where one is wanted.
        vantages: Vec<(Vantage, Option<PathBuf>)>,
    },
    /// The measured window begins: what passes from now on counts.
    Begin,
    /// The measured window has ended: what passes from now on does not count.
    End,
    /// Say what passed, once everything that did is read, and look no longer.
    Collect,
    /// Try whether packets can be captured at all.
    Try,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
pub(crate) enum Answer {
    /// It is done.
    Done,
    /// What passed at each vantage, in the order of `Watch`; or why that is not known.
    Collected {
        /// By vantage.
        tallies: Vec<Result<Tally, String>>,
    },
    /// It could not be done.
    Failed {
        /// What was attempted, and what happened.
        why: String,
    },
}
