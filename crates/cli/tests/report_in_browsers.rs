//! Reports in real browsers. Those with pages in them are looked at where pages are tested (`pages.rs`).

#[path = "support/browsers.rs"]
mod browsers;
#[path = "support/page_command.rs"]
mod page_command;
#[path = "support/readable.rs"]
mod readable;
#[path = "support/servers.rs"]
mod servers;
mod support;

use std::fs;

use readable::assert_readable;
use support::{only_run, run};
use tempfile::tempdir;

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
