//! Test fixture: a cell.

use indexmap::IndexMap;
use wirelab_model::plan::{Cell, Job, Load};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Extent;

/// Three documents of 1 KiB over HTTP/2, each on its own connection.
pub(crate) fn cell() -> Cell {
    let job = Job { load: Load { extent: Extent::Requests(3), ..Load::plain() }, ..Job::plain(Protocol::H2) };
    Cell { levels: IndexMap::new(), twin_of: None, job }
}
