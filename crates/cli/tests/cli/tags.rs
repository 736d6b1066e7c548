//! `wirelab tag`: words of the user for runs.

use std::fs;

use serde_json::{Value, json};
use tempfile::tempdir;
use wirelab_testkit::{only_run, run};

#[test]
fn tags_are_added_removed_and_listed() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let name = only_run(folder.path()).file_name().unwrap().to_str().unwrap().to_owned();
    let path = format!("wirelab-runs/{name}");
    assert_eq!(run(folder.path(), &["tag"]).with_status(0).out, "");
    assert_eq!(run(folder.path(), &["tag", &path]).with_status(0).out, format!("{path}: no tags\n"));
    let before = run(folder.path(), &["report", &path, "--format", "json"]).with_status(0).out;
    run(folder.path(), &["tag", &path, "v1.2", "baseline"]).with_status(0);
    assert_eq!(run(folder.path(), &["tag"]).with_status(0).out, format!("{path}: baseline v1.2\n"));
    run(folder.path(), &["tag", &path, "--remove", "v1.2"]).with_status(0);
    let said = run(folder.path(), &["tag", "--json"]).with_status(0).out;
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), json!([{ "run": path, "tags": ["baseline"] }]));
    assert_eq!(fs::read_to_string(folder.path().join(&path).join("tags.txt")).unwrap(), "baseline\n");
    assert_eq!(run(folder.path(), &["report", &path, "--format", "json"]).with_status(0).out, before);
}

#[test]
fn wrong_words_and_wrong_folders_are_wrong_input() {
    let folder = tempdir().unwrap();
    run(folder.path(), &["tag"]).with_status(2).complains(&["no runs below wirelab-runs", "Name a run folder"]);
    run(folder.path(), &["tag", "absent", "x"]).with_status(2).complains(&["no run folder absent"]);
    run(folder.path(), &["tag", ".", "x"]).with_status(2).complains(&["manifest.json"]);
    run(folder.path(), &["run", "quick", "--lab", "fake", "--quiet"]).with_status(0);
    let path = only_run(folder.path());
    let path = path.to_str().unwrap();
    run(folder.path(), &["tag", path, "right", "Not Right"]).with_status(2).complains(&["`Not Right` is no tag"]);
    run(folder.path(), &["tag", path, "--remove", "right"]).with_status(2).complains(&["no tag `right`", "none"]);
    run(folder.path(), &["tag", path, "--remove"]).with_status(2).complains(&["TAG"]);
}
