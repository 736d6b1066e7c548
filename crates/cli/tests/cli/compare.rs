//! `wirelab compare` and `wirelab history`, with runs of the lab `fake`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::{TempDir, tempdir};
use wirelab_testkit::{Said, run};

const STUDY: &str = r#"
name = "shop"
title = "T"
question = "Q?"
lab = "fake"
[workload]
payload = "1 KiB"
[factors]
protocol = ["h1", "h2"]
[compare]
factor = "protocol"
baseline = "h1"
metrics = ["response_median", "response_p90"]
[blocks]
min = 12
max = 12
"#;

fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    fs::write(folder.path().join("shop.toml"), STUDY).unwrap();
    folder
}

fn runs(folder: &Path) -> BTreeSet<PathBuf> {
    let entries = fs::read_dir(folder.join("wirelab-runs")).into_iter().flatten();
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Runs the study with these settings, and returns the run folder.
#[track_caller]
fn shop(folder: &Path, sets: &[&str]) -> String {
    let before = runs(folder);
    let mut args = vec!["run", "shop.toml", "--quiet", "--set", "planted=0 %"];
    args.extend(sets.iter().flat_map(|set| ["--set", set]));
    run(folder, &args).with_status(0);
    let after = runs(folder);
    let new: Vec<_> = after.difference(&before).collect();
    assert_eq!(new.len(), 1);
    new[0].display().to_string()
}

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}", said.out))
}

#[test]
fn two_runs_are_compared_by_cell_with_their_settings_and_the_caveat() {
    let folder = folder();
    let (small, other) = (shop(folder.path(), &["seed=1"]), shop(folder.path(), &["seed=2"]));
    let large = shop(folder.path(), &["payload=1 MiB"]);
    let compare =
        |first: &str, second: &str, more: &[&str]| run(folder.path(), &[&["compare", first, second], more].concat());
    let slower = compare(&small, &large, &["--fail-on", "p50 5 % worse"]).with_status(3);
    let slower =
        slower.complains(&["Not met: median response time no more than 5 % worse", "protocol=h1", "protocol=h2"]);
    for words in
        ["not interleaved", "wirelab ab", "✗ Requirement not met", "slower", "A/A pair of protocol=h1", "1 MiB"]
    {
        assert!(slower.out.contains(words), "`{words}` is missing in:\n{}", slower.out);
    }
    let faster = compare(&large, &small, &["--fail-on", "p50 5 % worse", "--fail-on", "inconclusive"]).with_status(0);
    assert!(faster.out.contains("✓ Requirement met") && faster.out.contains("faster"), "{}", faster.out);
    let same = json(&compare(&small, &other, &["--json", "--fail-on", "p50 50 % worse"]).with_status(0));
    assert_eq!((same["pairs"].as_array().unwrap().len(), &same["alone"]), (2, &serde_json::json!([[], []])));
    assert_eq!(same["requirements"][0]["verdict"], "met");
    assert!(same["changes"].as_array().unwrap().iter().all(|one| one["verdict"] != "more"), "{same}");
    assert_eq!(same["pairs"][0]["settings"], serde_json::json!([]));
    let set = same["conditions"].as_array().unwrap().iter().find(|one| one["field"] == "set").unwrap();
    assert!(set["values"][0].as_str().unwrap().contains("seed=1"), "{set}");
    let page = compare(&small, &large, &["--format", "html"]).with_status(0).out;
    assert_eq!(page.matches("<div class=\"facet\">").count(), 2, "a drawing for each metric: {page}");
    assert_eq!(page.matches("\nverdict: slower</title>").count(), 4, "{page}");
    assert!(page.contains("not interleaved"), "{page}");
    let one = json(&compare(&small, &other, &["--json", "--metric", "p99"]).with_status(0));
    assert!(one["changes"].as_array().unwrap().iter().all(|change| change["metric"] == "response_p99"), "{one}");
}

#[test]
fn cells_of_one_run_only_are_listed() {
    let folder = folder();
    let both = shop(folder.path(), &[]);
    let only = shop(folder.path(), &["protocol=h1"]);
    let other = shop(folder.path(), &["protocol=h3", "compare.baseline=h3", "payload=2 KiB"]);
    let said = run(folder.path(), &["compare", &both, &only]).with_status(0);
    assert!(said.out.contains("Only in the first run\n · protocol=h2"), "{}", said.out);
    run(folder.path(), &["compare", &both, &other]).with_status(2).complains(&[
        "no cell in common",
        "`protocol=h1`",
        "`protocol=h3`",
    ]);
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_remedy() {
    let folder = folder();
    let (first, second) = (shop(folder.path(), &["seed=1"]), shop(folder.path(), &["seed=2"]));
    let check = |args: &[&str], words: &[&str]| {
        run(folder.path(), &[&["compare"], args].concat()).with_status(2).complains(words);
    };
    check(&[&first, &format!("{first}/")], &["both runs are", "wirelab history"]);
    check(&[&first, &format!("{second}x")], &["no run folder", "did you mean"]);
    check(&[&first, "shop.toml"], &["shop.toml"]);
    check(&[&first, &second, "--metric", "p9"], &["no metric has this name", "did you mean"]);
    check(&[&first, &second, "--fail-on", "p99 > 50 ms"], &["wirelab run", "'p99 5 % worse'"]);
    check(&[&first, &second, "--fail-on", "claims"], &["wirelab report"]);
    check(&[&first, &second, "--fail-on", "errors 5 % worse"], &["share"]);
}

#[test]
fn a_history_has_a_change_point_where_the_values_change() {
    let folder = folder();
    for number in 0..9 {
        let payload = if number < 5 { "payload=1 KiB" } else { "payload=1 MiB" };
        shop(folder.path(), &["blocks.min=5", "blocks.max=5", &format!("seed={number}"), payload]);
    }
    let history = |more: &[&str]| run(folder.path(), &[&["history"], more].concat());
    let found = json(&history(&["--json", "--cell", "protocol=h2"]).with_status(0));
    assert_eq!((&found["study"], &found["metric"]["name"]), (&"shop".into(), &"response_median".into()));
    let [series] = found["series"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!((&series["label"], series["levels"].as_array().unwrap().len()), (&"protocol=h2".into(), 9));
    let [change] = series["changes"].as_array().unwrap().as_slice() else { panic!("{series}") };
    assert_eq!(change["at"], 5, "{series}");
    assert!(change["after"].as_f64() > change["before"].as_f64() && change["p"].as_f64().unwrap() < 0.05, "{change}");
    assert!(series["changed"][5].to_string().contains("size") && series["changed"][4] == serde_json::json!([]));
    let text = history(&[]).with_status(0).out;
    assert!(text.starts_with("Median response time of shop over 9 runs"), "{text}");
    assert_eq!(text.matches("▲").count(), 2, "{text}");
    let csv = history(&["--format", "csv", "--metric", "p90"]).with_status(0).out;
    assert_eq!(csv.lines().count(), 1 + 2 * 9, "{csv}");
    assert!(csv.lines().nth(1).unwrap().starts_with("shop,protocol=h1,response_p90,shop-"), "{csv}");
    let page = history(&["--format", "html"]).with_status(0).out;
    assert_eq!(page.matches("<div class=\"facet\">").count(), 2, "{page}");
    assert_eq!(page.matches("\nchange point, P: ").count(), 2, "{page}");
    history(&["--cell", "protocol=h3"]).with_status(2).complains(&["protocol=h1; protocol=h2"]);
    history(&["--cell", "h2"]).with_status(2).complains(&["FACTOR=LEVEL"]);
    history(&["--study", "shp"]).with_status(2).complains(&["did you mean `shop`"]);
    history(&["--metric", "p9"]).with_status(2).complains(&["did you mean"]);
    history(&["nowhere"]).with_status(2).complains(&["nowhere", "wirelab run quick"]);
}

#[test]
fn a_run_begins_with_its_expected_time_which_earlier_runs_make_exact() {
    let folder = folder();
    let args = ["run", "shop.toml", "--set", "requests=20"];
    let first = run(folder.path(), &args).with_status(0).complains(&["at least", "are assumed to take 0.5 s"]);
    assert!(first.err.starts_with("Expected time: "), "{}", first.err);
    let plan = run(folder.path(), &[&args[..], &["--plan"]].concat()).with_status(0);
    assert!(plan.out.contains("Expected time: 0:0") && plan.out.contains("earlier ones."), "{}", plan.out);
    let quiet = run(folder.path(), &[&args[..], &["--quiet"]].concat()).with_status(0);
    assert!(!quiet.err.contains("Expected time"), "{}", quiet.err);
}
