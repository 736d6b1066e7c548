//! Reports in real browsers. `pages.rs` tests the reports of page loads.

use std::fs;

use tempfile::tempdir;
use wirelab_testkit::readable::assert_readable;
use wirelab_testkit::{only_run, run};

#[test]
fn the_reports_of_a_run_and_of_a_table_are_readable_without_a_network() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    assert_readable(&only_run(folder.path()).join("report.html"));
    let said = run(folder.path(), &["analyze", "page-load", "--format", "html"]).with_status(0);
    let table = folder.path().join("table.html");
    fs::write(&table, said.out).unwrap();
    assert_readable(&table);
}
