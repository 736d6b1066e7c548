//! The section of an imported table, in place of the environment of a run.

use crate::Input;
use crate::html::method::Fact;
use crate::layout::Layout;
use crate::means::{self, Comparisons, NOTE};
use crate::source;

pub(super) struct TableView {
    pub file: String,
    pub comparisons: Vec<Comparisons>,
    pub note: &'static str,
    pub facts: Vec<Fact>,
    pub limits: Vec<String>,
}

/// `None` for a run.
pub(super) fn view(input: &Input, layout: &Layout) -> Option<TableView> {
    let table = input.table?;
    let facts = source::facts(table).into_iter().map(|(name, value)| Fact { name, value });
    Some(TableView {
        file: table.file.clone(),
        comparisons: means::tables(input, layout),
        note: NOTE,
        facts: facts.collect(),
        limits: source::limits(input, table),
    })
}
