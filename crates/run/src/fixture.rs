//! Test fixtures: a cell, and a plan.

use indexmap::IndexMap;
use wirelab_model::plan::{Cell, Job, Load, Plan};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Extent;

/// Three documents of 1 KiB over HTTP/2, each on its own connection.
pub(crate) fn cell() -> Cell {
    let job = Job { load: Load { extent: Extent::Requests(3), ..Load::plain() }, ..Job::plain(Protocol::H2) };
    Cell { levels: IndexMap::new(), twin_of: None, job }
}

/// One block of these cells, without comparisons.
pub(crate) fn plan(cells: Vec<Cell>) -> Plan {
    Plan { cells, comparisons: Vec::new(), seed: 1, min_blocks: 1, max_blocks: 1, budget: None, precision: 0.05 }
}
