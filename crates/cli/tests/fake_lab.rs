//! The whole pipeline on the fake lab: a pure function of the seed, from the command line to every form of report.

mod support;

use std::fs;

use support::{only_run, run};
use tempfile::tempdir;

#[test]
fn a_run_ends_in_every_form_of_report() {
    let folder = tempdir().unwrap();
    let said = run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    assert!(said.out.contains("HTTP/2") && said.out.contains("report.html"), "{}", said.out);
    let path = only_run(folder.path());
    for file in ["manifest.json", "journal.jsonl", "report.html"] {
        assert!(path.join(file).metadata().unwrap().len() > 100, "{file}");
    }
    for format in ["terminal", "markdown", "html", "csv", "comparisons", "json"] {
        let report = run(folder.path(), &["report", "--format", format]).with_status(0);
        assert!(report.out.len() > 200, "{format}: {}", report.out);
        assert!(!report.out.contains("NaN"), "{format} shows NaN");
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let numbers = || {
        let folder = tempdir().unwrap();
        run(folder.path(), &["run", "null", "--preset", "smoke", "--lab", "fake", "--quiet"]).with_status(0);
        run(folder.path(), &["report", "--format", "comparisons"]).with_status(0).out
    };
    assert_eq!(numbers(), numbers());
}

#[test]
fn resuming_a_finished_run_changes_nothing() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "null", "--preset", "smoke", "--lab", "fake", "--quiet"]).with_status(0);
    let journal = only_run(folder.path()).join("journal.jsonl");
    let before = fs::read_to_string(&journal).unwrap();
    run(folder.path(), &["resume", "--quiet"]).with_status(0);
    let trials = |text: &str| text.lines().filter(|line| line.contains("\"trial\"")).count();
    assert_eq!(trials(&before), trials(&fs::read_to_string(&journal).unwrap()));
}

#[test]
fn the_plan_is_shown_without_running_anything() {
    let folder = tempdir().unwrap();
    let said = run(folder.path(), &["run", "cloud-quic", "--preset", "faithful", "--plan"]).with_status(0);
    assert!(said.out.contains("protocol=udp") && said.out.contains("cells"), "{}", said.out);
    assert!(!folder.path().join("wirelab-runs").exists());
}
