//! The committed reference pages equal the pages generated from the declarations.

use std::path::Path;

use wirelab_testkit::run;

#[test]
fn the_committed_reference_pages_are_those_of_the_declarations() {
    let committed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let written = tempfile::tempdir().unwrap();
    let out = written.path().to_str().unwrap();
    run(Path::new("."), &["reference", "--out", out]).with_status(0);
    let names = |folder: &Path| {
        let entries = std::fs::read_dir(folder).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&committed), names(written.path()), "docs/reference has other pages; run `make reference`");
    for name in names(written.path()) {
        let text = |folder: &Path| std::fs::read_to_string(folder.join(&name)).unwrap();
        let same = text(&committed) == text(written.path());
        assert!(same, "docs/reference/{} is stale; run `make reference`", name.display());
    }
}

#[test]
fn the_metrics_of_a_page_load_are_those_of_a_trial_with_page_loads() {
    let sorted = |mut metrics: Vec<(String, _, _)>| {
        metrics.sort_by(|one, other| one.0.cmp(&other.0));
        metrics
    };
    let loads = wirelab_browser::METRICS.iter().map(|one| (format!("page_{}", one.name), one.unit, one.better));
    let trials = wirelab_stats::PAGE_METRICS.iter().map(|one| (one.name.to_owned(), one.unit, one.better));
    assert_eq!(sorted(loads.collect()), sorted(trials.collect()));
}
