//! A real run on loopback: every trial is measured, and the accounts agree with each other.

mod support;

use std::fs;

use serde_json::Value;
use support::{only_run, run};
use tempfile::tempdir;

#[test]
fn a_run_on_loopback_measures_every_cell_on_both_sides() {
    let folder = tempdir().unwrap();
    let small = ["--set", "payload=1 KiB", "--set", "duration=30 ms", "--set", "blocks.min=2", "--set", "blocks.max=2"];
    run(folder.path(), &[&["run", "quick", "--quiet", "--json"], &small[..]].concat()).with_status(0);
    let path = only_run(folder.path());
    let journal = fs::read_to_string(path.join("journal.jsonl")).unwrap();
    let trials: Vec<Value> = journal
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|entry: &Value| entry["entry"] == "trial")
        .collect();
    // Three protocols and the baseline's twin, on new and on kept connections, in two blocks.
    assert_eq!(trials.len(), 4 * 2 * 2);
    for trial in &trials {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        let number = |name: &str| trial["values"][name].as_f64().unwrap_or_else(|| panic!("{name}: {trial}"));
        assert!(number("requests") > 0.0 && number("error_share") == 0.0, "{trial}");
        assert!(number("response_min") <= number("response_median"), "{trial}");
        for side in ["client", "server"] {
            let window = number(&format!("cpu_{side}_per_request")) * number("requests");
            let life = number(&format!("life_cpu_{side}_user")) + number(&format!("life_cpu_{side}_system"));
            assert!(window > 0.0 && window <= life * 1.01, "{side}: {window} ns in the window, {life} ns in all");
            assert!(number(&format!("memory_{side}_peak")) > 1e6, "{trial}");
        }
        assert!(path.join(trial["results"].as_str().unwrap()).exists(), "{trial}");
    }
    let work = path.join("work");
    assert!(!work.exists(), "certificates and keys are removed: {work:?}");
}
