//! A real run on loopback: every trial is measured, and the accounts agree.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::{only_run, program, run, said};

/// The user `nobody` of Debian and most other distributions.
const NOBODY: u32 = 65_534;

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

#[test]
fn under_strace_only_system_calls_are_measured_and_kept() {
    let folder = tempdir().unwrap();
    let small =
        ["--set", "protocol=h1", "--set", "connection=persistent", "--set", "payload=1 KiB", "--set", "duration=30 ms"];
    let blocks = ["--set", "blocks.min=1", "--set", "blocks.max=1", "--observe", "strace"];
    run(folder.path(), &[&["run", "quick", "--quiet"], &small[..], &blocks].concat()).with_status(0);
    let path = only_run(folder.path());
    let journal = fs::read_to_string(path.join("journal.jsonl")).unwrap();
    let entries = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trials: Vec<_> = entries.filter(|entry| entry["entry"] == "trial").collect();
    assert!(!trials.is_empty(), "{journal}");
    for trial in &trials {
        assert_eq!(trial["outcome"], "ok", "{trial}");
        assert_eq!(trial["warnings"][0]["warning"], "stopped", "{trial}");
        assert!(trial["results"].is_null(), "{trial}");
        // A request and its response take at least one call each, on both sides.
        for side in ["client", "server"] {
            let calls = trial["values"][format!("strace_{side}_per_request")].as_f64();
            assert!(calls.is_some_and(|calls| (2.0..100.0).contains(&calls)), "{trial}");
        }
        let values = trial["values"].as_object().unwrap().iter();
        let others: Vec<_> = values.filter(|(name, value)| !name.starts_with("strace_") && value.is_number()).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}

#[test]
fn an_unknown_observer_is_refused_with_the_nearest_one() {
    let folder = tempdir().unwrap();
    let refusal = run(folder.path(), &["run", "quick", "--observe", "stracee"]).with_status(2);
    let expected = "--observe stracee: there is no observer `stracee`, did you mean `strace`";
    assert!(refusal.err.contains(expected), "{}", refusal.err);
}

#[test]
fn a_user_without_root_gets_results_of_every_protocol_also_where_the_kernel_forbids_cubic() {
    let folder = tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    // The folders above the program may be closed to other users. Another process writes the copy, because a process
    // that another test starts can inherit a file that is being written here, and such a file cannot be executed.
    let copy = folder.path().join("wirelab");
    said(Command::new("cp").arg(program()).arg(&copy).output().unwrap()).with_status(0);
    let mut command = Command::new(&copy);
    command.args(["run", "quick", "--quiet", "--set", "payload=1 KiB", "--set", "duration=30 ms"]);
    command.args(["--set", "blocks.min=1", "--set", "blocks.max=1"]).current_dir(folder.path());
    command.env("HOME", folder.path()).env("XDG_STATE_HOME", folder.path()).env("WIRELAB_CARRIED", "off");
    if rustix::process::geteuid().is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    said(command.output().unwrap()).with_status(0);
    let path = only_run(folder.path());
    let journal = fs::read_to_string(path.join("journal.jsonl")).unwrap();
    let entries = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let trials: Vec<_> = entries.filter(|entry| entry["entry"] == "trial").collect();
    assert_eq!(trials.len(), 8);
    for trial in &trials {
        assert_eq!(trial["outcome"], "ok", "{trial}");
    }
    let allowed = fs::read_to_string("/proc/sys/net/ipv4/tcp_allowed_congestion_control").unwrap();
    let is_allowed = allowed.split_whitespace().any(|name| name == "cubic");
    let manifest: Value = serde_json::from_slice(&fs::read(path.join("manifest.json")).unwrap()).unwrap();
    let version = run(folder.path(), &["--version"]).with_status(0).out;
    let commit = manifest["environment"]["commit"].as_str().unwrap_or("commit unknown");
    assert!(version.contains(&format!("({commit})")), "{commit}: {version}");
    let warnings = manifest["warnings"].as_array().unwrap();
    let is_replaced = warnings.iter().any(|warning| warning["warning"] == "congestion_replaced");
    assert_eq!(is_replaced, !is_allowed, "{warnings:?}");
}
