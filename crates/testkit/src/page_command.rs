//! `wirelab page` as a command of tests: its report of a load, and the traces that it leaves.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::servers::Place;
use crate::{Said, eventually, processes, said, wirelab};

/// The command. Its temporary files are below the place, so that tests can find files that it leaves behind.
pub fn page_command(place: &Place, port: u16, path: &str, args: &[&str]) -> Command {
    let url = format!("https://localhost:{port}/{path}");
    let mut command = wirelab(place.folder(), &[&["page", &url, "--ca", "ca.pem", "--quiet"], args].concat());
    command.env("TMPDIR", place.folder());
    command
}

/// Runs the command to its end.
#[track_caller]
pub fn page(place: &Place, port: u16, path: &str, args: &[&str]) -> Said {
    said(page_command(place, port, path, args).output().unwrap())
}

/// The JSON on its standard output.
#[track_caller]
pub fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("not JSON ({error}):\n{}\n{}", said.out, said.err))
}

/// The only load of the only cell.
#[track_caller]
pub fn only_load(said: &Said) -> Value {
    let found = json(said);
    let [cell] = &found["cells"].as_array().unwrap()[..] else { panic!("{found}") };
    let [load] = &cell["loads"].as_array().unwrap()[..] else { panic!("{cell}") };
    load.clone()
}

/// Demands a failed load with this blame and these words.
#[track_caller]
pub fn assert_blamed(load: &Value, blame: &str, words: &[&str]) {
    assert_eq!((&load["outcome"], &load["blame"]), (&"failed".into(), &blame.into()), "{load}");
    let reason = load["reason"].as_str().unwrap();
    for word in words {
        assert!(reason.contains(word), "`{word}` is missing in: {reason}");
    }
    assert_eq!(load["values"], serde_json::json!({}), "what is no sample has no values");
}

/// Files that browsers left in a place.
pub fn left(place: &Place) -> Vec<PathBuf> {
    let entries = fs::read_dir(place.folder()).unwrap().map(|entry| entry.unwrap().path());
    let is_left = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        ["wirelab-", "org.chromium", "com.google", "rust_mozprofile", "mozilla_"]
            .iter()
            .any(|begin| name.starts_with(begin))
    };
    entries.filter(is_left).collect()
}

/// Demands that every browser of a place ends, and that every profile is removed.
#[track_caller]
pub fn assert_nothing_left(place: &Place) {
    let mark = place.folder().to_string_lossy().into_owned();
    let is_browser =
        |pid: &u32| !fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default().contains("endpoint");
    eventually("the end of every browser", || !processes(&mark).iter().any(is_browser));
    eventually("the removal of every profile", || left(place).is_empty());
}
