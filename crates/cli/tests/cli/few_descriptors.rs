//! Commands that may open few files: the limit is named with the remedy, and no endpoint is blamed.

use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::tempdir;
use wirelab_testkit::lab::all_trials;
use wirelab_testkit::{Said, program, said};

/// Runs wirelab with at most `files` open files in each process.
fn limited(files: u32, folder: &Path, args: &[&str]) -> Said {
    let mut command = Command::new("sh");
    // Without the files that the tests' own parents left open.
    let script = format!("exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&-; ulimit -n {files} && exec \"$@\"");
    command.arg("-c").arg(script).arg("sh").arg(program()).args(args);
    command.current_dir(folder).stdin(Stdio::null()).env("NO_COLOR", "1").env("WIRELAB_CARRIED", "off");
    said(command.output().unwrap())
}

const RUN: [&str; 7] = ["run", "quick", "--quiet", "--lab", "loopback", "--set", "duration=50ms"];

#[test]
fn a_run_with_eight_files_ends_before_the_first_trial_and_blames_no_endpoint() {
    let folder = tempdir().unwrap();
    let ended = limited(8, folder.path(), &RUN).with_status(1);
    let ended = ended.complains(&["Too many open files", "raise the limit of open files: `ulimit -n 1024`"]);
    assert!(!ended.err.contains("contract"), "{}", ended.err);
    assert!(!folder.path().join("wirelab-runs").exists(), "a run folder was made");
}

#[test]
fn a_run_with_twenty_files_fails_its_trials_with_the_remedy_and_stops() {
    let folder = tempdir().unwrap();
    limited(20, folder.path(), &RUN).with_status(1).complains(&["every trial of the first block failed"]);
    for (_, trial) in all_trials(folder.path()) {
        assert_eq!((&trial["outcome"], &trial["blame"]), (&"failed".into(), &"lab".into()), "{trial}");
        assert!(trial["reason"].as_str().unwrap().contains("ulimit -n 1024"), "{trial}");
    }
}

#[test]
fn commands_with_hardly_any_files_name_the_limit() {
    let folder = tempdir().unwrap();
    for files in [4, 6, 7] {
        for command in [&["load", "http://127.0.0.1:9/"][..], &["doctor"], &["probe", "https://127.0.0.1:9/"]] {
            let ended = limited(files, folder.path(), command).with_status(1);
            let ended = ended.complains(&["cannot open 5 more files", "`ulimit -n 1024`"]);
            assert!(!ended.err.contains("panicked"), "{}", ended.err);
        }
    }
}
