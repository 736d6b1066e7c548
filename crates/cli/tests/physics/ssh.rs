//! The lab `hosts` on real sshd's, each with a network, processes and files of its own.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::tempdir;
use wirelab_testkit::lab::{all_trials, trials};
use wirelab_testkit::physics::Test;
use wirelab_testkit::ssh::SshHosts;
use wirelab_testkit::test;
use wirelab_testkit::{Said, eventually, only_run, said, wirelab};

/// The tests of this file.
pub fn tests() -> Vec<Test> {
    vec![
        test!(a_study_runs_between_two_hosts_and_leaves_nothing_there).side_by_side(),
        test!(a_host_that_ssh_does_not_reach_is_named_with_the_remedy).side_by_side(),
        test!(a_killed_run_leaves_nothing_on_hosts_and_is_resumed_on_them).side_by_side(),
        test!(a_host_that_loses_its_power_costs_one_trial).side_by_side(),
        test!(a_cut_network_costs_one_trial_and_leaves_nothing).quiet(),
        test!(remains_of_a_host_that_was_switched_off_are_cleaned).side_by_side(),
    ]
}

const STUDY: &str = r#"
name = "pair"
title = "Between two hosts"
question = "Is HTTP/3 as fast as HTTP/1.1 between two hosts?"
observers = ["cpu"]
[workload]
payload = "1 KiB"
duration = "100 ms"
[factors]
protocol = ["h1", "h3"]
[compare]
factor = "protocol"
baseline = "h1"
[blocks]
min = 1
max = 1
"#;

pub const PAIR: &str = "client=near,server=far";

pub fn study(folder: &Path) {
    fs::write(folder.join("study.toml"), STUDY).unwrap();
}

pub fn command(hosts: &SshHosts, folder: &Path, args: &[&str]) -> Command {
    let mut command = wirelab(folder, args);
    command.env("PATH", hosts.path());
    command
}

pub fn measure(hosts: &SshHosts, folder: &Path, args: &[&str]) -> Said {
    let args = [&["run", "study.toml", "--lab", "hosts", "--quiet"], args].concat();
    said(command(hosts, folder, &args).output().unwrap())
}

pub fn is_clean(hosts: &SshHosts, numbers: &[usize]) {
    for number in numbers {
        eventually("an empty host", || hosts.remains(*number).is_empty());
    }
}

fn a_study_runs_between_two_hosts_and_leaves_nothing_there() {
    let Some(hosts) = SshHosts::start(&["near", "far"]) else { return };
    let folder = tempdir().unwrap();
    study(folder.path());
    measure(&hosts, folder.path(), &["--hosts", PAIR]).with_status(0);
    let trials = trials(folder.path());
    // Two protocols and the A/A twin.
    assert_eq!(trials.len(), 3);
    for (_, trial) in &trials {
        for metric in ["cpu_client_per_request", "cpu_server_per_request", "response_median"] {
            assert!(trial["values"][metric].as_f64().is_some_and(|value| value > 0.0), "{metric}: {trial}");
        }
        let names = ["client", "server"].map(|side| &trial[side]["host_name"]);
        assert_eq!(names, ["near", "far"], "{trial}");
    }
    is_clean(&hosts, &[0, 1]);

    // Both on one host.
    let folder = tempdir().unwrap();
    study(folder.path());
    measure(&hosts, folder.path(), &["--hosts", PAIR, "--set", "placement=same-node"]).with_status(0);
    is_clean(&hosts, &[0, 1]);
}

fn a_host_that_ssh_does_not_reach_is_named_with_the_remedy() {
    let Some(hosts) = SshHosts::start(&["near", "far"]) else { return };
    let folder = tempdir().unwrap();
    study(folder.path());
    let refused = |args: &[&str], status, words: &[&str]| {
        measure(&hosts, folder.path(), args).with_status(status).complains(words);
    };
    refused(&[], 2, &["--hosts client=alice@a.example,server=b.example"]);
    refused(&["--hosts", "client=near"], 2, &["no host has the role `server`"]);
    refused(&["--hosts", "clint=near,server=far"], 2, &["did you mean `client`"]);
    refused(&["--hosts", PAIR, "--set", "placement=same-zone"], 2, &["give the hosts a `zone`"]);
    refused(&["--hosts", "client=near,server=10.77.0.99"], 1, &["10.77.0.99", "`ssh 10.77.0.99` must work"]);
    fs::write(hosts.known_hosts(), "").unwrap();
    refused(&["--hosts", PAIR], 1, &["Host key verification failed", "must work without questions"]);
    is_clean(&hosts, &[0, 1]);
}

/// Starts a run, and waits until its journal has this many trials.
fn begun(hosts: &SshHosts, folder: &Path, count: usize) -> Child {
    study(folder);
    let args = [
        "run",
        "study.toml",
        "--lab",
        "hosts",
        "--quiet",
        "--hosts",
        PAIR,
        "--set",
        "blocks.min=3",
        "--set",
        "blocks.max=3",
    ];
    let child = command(hosts, folder, &args).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = || {
        let run = fs::read_dir(folder.join("wirelab-runs")).ok()?.flatten().next()?.path();
        fs::read_to_string(run.join("journal.jsonl")).ok()
    };
    let trials = |text: &str| text.lines().filter(|line| line.contains(r#""entry":"trial""#)).count();
    eventually("the first trials", || journal().is_some_and(|text| trials(&text) >= count));
    child
}

fn a_killed_run_leaves_nothing_on_hosts_and_is_resumed_on_them() {
    let Some(hosts) = SshHosts::start(&["near", "far"]) else { return };
    let folder = tempdir().unwrap();
    let mut child = begun(&hosts, folder.path(), 2);
    child.kill().unwrap();
    child.wait().unwrap();
    is_clean(&hosts, &[0, 1]);
    said(command(&hosts, folder.path(), &["resume", "--quiet"]).output().unwrap()).with_status(0);
    assert_eq!(trials(folder.path()).len(), 9);
    assert!(only_run(folder.path()).join("hosts.toml").exists());
    is_clean(&hosts, &[0, 1]);
}

fn a_host_that_loses_its_power_costs_one_trial() {
    let Some(mut hosts) = SshHosts::start(&["near", "far"]) else { return };
    let folder = tempdir().unwrap();
    let child = begun(&hosts, folder.path(), 2);
    hosts.switch_off(1);
    hosts.boot(1);
    costs_few_trials(&hosts, folder.path(), child);
}

/// Waits longer than the agent waits for a sign of life.
fn a_cut_network_costs_one_trial_and_leaves_nothing() {
    let Some(hosts) = SshHosts::start(&["near", "far"]) else { return };
    let folder = tempdir().unwrap();
    let child = begun(&hosts, folder.path(), 2);
    hosts.set_link(1, false);
    std::thread::sleep(Duration::from_secs(25));
    hosts.set_link(1, true);
    costs_few_trials(&hosts, folder.path(), child);
}

/// The run goes on to its end. The trial that was under way failed through the lab, and the next one may have.
fn costs_few_trials(hosts: &SshHosts, folder: &Path, child: Child) {
    let end = said(child.wait_with_output().unwrap());
    let all = all_trials(folder);
    let failed: Vec<_> = all.iter().filter(|(_, trial)| trial["outcome"] != "ok").collect();
    assert!(failed.len() <= 2, "{failed:?}\n{}", end.err);
    assert!(failed.iter().all(|(_, trial)| trial["blame"] == "lab"), "{failed:?}");
    assert_eq!(all.len(), 9, "{}", end.err);
    is_clean(hosts, &[0, 1]);
}

fn remains_of_a_host_that_was_switched_off_are_cleaned() {
    let Some(hosts) = SshHosts::start(&["near", "far"]) else { return };
    let folder = tempdir().unwrap();
    // A folder as a reboot leaves it, and one of another program.
    let there = |script: &str| {
        let output = Command::new("ssh").env("PATH", hosts.path()).args(["far", script]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    there(
        "mkdir /tmp/wirelab-abcdefgh /tmp/other && echo 1 > /tmp/wirelab-abcdefgh/holder && touch /tmp/wirelab-abcdefgh/wirelab",
    );
    let clean = |args: &[&str]| {
        let args = [&["labs", "clean", "--hosts", PAIR], args].concat();
        said(command(&hosts, folder.path(), &args).output().unwrap()).with_status(0).out
    };
    assert_eq!(clean(&["--dry-run"]), "far:/tmp/wirelab-abcdefgh  would be removed\n");
    assert_eq!(clean(&[]), "far:/tmp/wirelab-abcdefgh  removed\n");
    assert_eq!(there("ls /tmp"), "other\n");
    assert_eq!(clean(&["--json"]).trim(), "[]");
}
