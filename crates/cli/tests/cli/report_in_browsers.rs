//! Reports in real browsers. `pages.rs` tests the reports of page loads.

use std::fs;

use tempfile::tempdir;
use wirelab_browser::Browser;
use wirelab_testkit::browsers::is_here;
use wirelab_testkit::devtools::{Page, axe_core};
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

#[test]
fn a_report_violates_no_rule_of_accessibility_wide_narrow_or_dark() {
    if !is_here(Browser::Chromium) {
        return;
    }
    let Some(axe) = axe_core() else { return };
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let mut page = Page::open(&format!("file://{}", only_run(folder.path()).join("report.html").display()));
    page.until("document.readyState === 'complete' && document.querySelector('.headline') !== null");
    for (size, is_dark) in [([1280, 800], false), ([400, 800], false), ([1280, 800], true)] {
        page.look(size, is_dark);
        page.eval("for (const part of document.querySelectorAll('details')) part.open = true");
        assert_eq!(page.violations(&axe), [""; 0], "{size:?}, dark: {is_dark}");
    }
}
