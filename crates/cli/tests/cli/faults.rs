//! Every operation with which a run changes files or starts something fails once, or wirelab is killed there. `strace`
//! injects these faults into the program as it is. Each time the run goes on, or ends with the reason and can be
//! resumed; what was journalled stays, and nothing else is left.
//!
//! `make test` takes one operation of each kind, `make faults` all of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::{eventually, only_run, processes, run, tree};

use crate::traced;

/// System calls, each with an error that the kernel may return for it.
const CALLS: &[(&str, &str)] = &[
    ("bind", "EADDRINUSE"),
    ("clone", "EAGAIN"),
    ("clone3", "EAGAIN"),
    ("fdatasync", "EIO"),
    ("fsync", "EIO"),
    ("ftruncate", "EIO"),
    ("mkdir", "ENOSPC"),
    ("openat", "EMFILE"),
    ("pipe2", "EMFILE"),
    ("rename", "EIO"),
    ("socket", "EMFILE"),
    ("unlink", "EIO"),
    ("unlinkat", "EIO"),
    ("vfork", "EAGAIN"),
    ("write", "ENOSPC"),
];

/// A system call of the first thread of wirelab, which runs the trials.
#[derive(Debug)]
struct Operation {
    call: &'static str,
    error: &'static str,
    /// Its number among the calls of this name, from 1.
    number: usize,
    /// The file that it is about, or else the one of the operation before it; digits are `#`.
    about: String,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    Error,
    Kill,
}

#[test]
fn faults_of_the_file_system_lose_nothing() {
    attack("fake");
}

#[test]
fn faults_around_processes_lose_nothing() {
    attack("loopback");
}

fn attack(lab: &str) {
    if !traced::is_possible() {
        return;
    }
    let home = tempdir().unwrap();
    let clean = Attempt::new(lab, home.path(), "clean");
    let operations = clean.operations();
    assert!(operations.len() > 100, "{operations:?}");
    let is_sample = std::env::var_os("WIRELAB_FAULTS").is_none();
    let mut kinds = BTreeSet::new();
    for operation in operations {
        let is_new = kinds.insert((operation.call, operation.about.clone()));
        // The sample has half of the kinds with either fault, the other one by turns.
        let faults = match (is_sample, kinds.len() % 2) {
            (true, _) if !is_new => &[][..],
            (true, 0) => &[Fault::Error],
            (true, _) => &[Fault::Kill],
            (false, _) => &[Fault::Error, Fault::Kill],
        };
        for fault in faults {
            println!("{lab}: {fault:?} at {operation:?}");
            let attempt = Attempt::new(lab, home.path(), "attempt");
            attempt.suffers(&operation, *fault, &clean);
            fs::remove_dir_all(attempt.folder).unwrap();
        }
    }
}

/// A short run in a folder of its own.
struct Attempt {
    lab: String,
    folder: PathBuf,
}

impl Attempt {
    fn new(lab: &str, home: &Path, name: &str) -> Self {
        let folder = home.join(name);
        fs::create_dir(&folder).unwrap();
        Self { lab: lab.to_owned(), folder }
    }

    /// Runs wirelab under `strace` with these options.
    fn traced(&self, options: &[&str]) -> Output {
        let args = ["run", "quick", "--lab", &self.lab, "--quiet", "--set", "protocol=h1,h2", "--set", "payload=1 KiB"];
        let short = ["--set", "requests=20", "--set", "blocks.min=1", "--set", "blocks.max=1"];
        traced::run(&self.folder, options, &[&args[..], &short].concat())
    }

    /// The operations of a run without faults, from the first that concerns its folder.
    fn operations(&self) -> Vec<Operation> {
        let names: Vec<_> = CALLS.iter().map(|(call, _)| *call).collect();
        let log = self.folder.join("trace");
        let traced = self.traced(&["-y", "-o", log.to_str().unwrap(), "-e", &format!("trace={}", names.join(","))]);
        assert!(traced.status.success(), "{traced:?}");
        let runs = self.folder.join("wirelab-runs").display().to_string();
        let (mut counts, mut operations, mut about) = (BTreeMap::new(), Vec::new(), None);
        for line in fs::read_to_string(log).unwrap().lines() {
            let Some((call, error)) = CALLS.iter().find(|(call, _)| line.starts_with(&format!("{call}("))) else {
                continue;
            };
            let number = *counts.entry(call).and_modify(|count| *count += 1).or_insert(1);
            let named = line.split_once(&runs).map(|(_, rest)| without_digits(rest));
            let changes = match *call {
                // Most files are opened to be read, and most of those are of the kernel.
                "openat" => line.contains("O_CREAT") || line.contains("O_WRONLY"),
                // The others go to pipes, which have no full disk.
                "write" => named.is_some(),
                _ => true,
            };
            about = named.or(about);
            // On the lab `fake`, the thread also plays the client, whose faults are its own.
            let plays = |about: &String| self.lab == "fake" && about.ends_with("/results.jsonl") && *call != "unlink";
            if let Some(about) = about.as_ref().filter(|about| changes && !plays(about)) {
                operations.push(Operation { call, error, number, about: about.clone() });
            }
        }
        operations
    }

    fn suffers(&self, operation: &Operation, fault: Fault, clean: &Attempt) {
        let Operation { call, error, number, .. } = operation;
        let injected = match fault {
            Fault::Error => format!("inject={call}:error={error}:when={number}"),
            Fault::Kill => format!("inject={call}:signal=KILL:when={number}"),
        };
        let log = self.folder.join("trace");
        let traced = self.traced(&["-o", log.to_str().unwrap(), "-e", &format!("trace={call}"), "-e", &injected]);
        let words = String::from_utf8_lossy(&traced.stderr);
        let mark = self.folder.to_str().unwrap();
        match fault {
            Fault::Error => {
                let status = traced.status.code().expect("wirelab is not killed");
                assert!(status <= 1, "status {status}: {words}");
                assert!(status == 0 || words.contains("wirelab: "), "no reason: {words}");
                assert!(processes(mark).is_empty(), "left: {:?}", tree::descendants(1));
            }
            Fault::Kill => eventually("the end of every process", || processes(mark).is_empty()),
        }
        let Some(before) = self.entries() else {
            run(&self.folder, &["resume", "--quiet"]).with_status(2);
            return;
        };
        run(&self.folder, &["resume", "--quiet"]).with_status(0);
        let after = self.entries().unwrap();
        for (number, entry) in &before {
            assert_eq!(after.get(number), Some(entry), "a journalled trial is kept as it was");
        }
        let expected = clean.entries().unwrap();
        assert!(after.keys().eq(expected.keys()), "trials: {:?}, not {:?}", after.keys(), expected.keys());
        let failed: Vec<_> = after.iter().filter(|(_, entry)| entry["outcome"] == "failed").collect();
        // On a busy machine a client may be too slow for its window.
        let by_fault: Vec<_> = failed.iter().filter(|(_, entry)| entry["reason_code"] != "violation").collect();
        assert!(by_fault.len() <= 1 && by_fault.iter().all(|(_, entry)| entry["blame"] == "lab"), "{by_fault:?}");
        if self.lab == "fake" {
            let differs = |(number, entry): &(&u64, &Value)| {
                entry["outcome"] == "ok" && entry["values"] != expected[number]["values"]
            };
            assert_eq!(after.iter().find(differs), None, "values are those of the seed");
        }
        // A failed trial has no samples.
        let numbers: Vec<_> = failed.iter().map(|(number, _)| format!("trial-{number:06}")).collect();
        let missing = |file: &String| !numbers.iter().any(|number| file.contains(number));
        let (files, all) = (self.files(), clean.files());
        let lost: Vec<_> = all.difference(&files).filter(|file| missing(file)).collect();
        // A process that failed has a log.
        let left: Vec<_> = files.difference(&all).filter(|file| !file.starts_with("logs/")).collect();
        assert!(lost.is_empty() && left.is_empty(), "lost: {lost:?}, left: {left:?}");
    }

    /// The trials of the journal by number, or `None` if the run had not begun. A torn last line is no entry.
    fn entries(&self) -> Option<BTreeMap<u64, Value>> {
        let path = fs::read_dir(self.folder.join("wirelab-runs")).ok()?.next()?.unwrap().path();
        path.join("manifest.json").exists().then(|| {
            let text = fs::read_to_string(path.join("journal.jsonl")).unwrap_or_default();
            let entries = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            entries.filter_map(|entry| Some((entry["number"].as_u64()?, entry))).collect()
        })
    }

    /// The files of the run folder, as paths in it.
    fn files(&self) -> BTreeSet<String> {
        let root = only_run(&self.folder);
        let (mut files, mut open) = (BTreeSet::new(), vec![root.clone()]);
        while let Some(folder) = open.pop() {
            for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
                match path.is_dir() {
                    true => open.push(path),
                    false => drop(files.insert(path.strip_prefix(&root).unwrap().display().to_string())),
                }
            }
        }
        files
    }
}

/// The path at the beginning of a text, with a sign in place of digits.
fn without_digits(text: &str) -> String {
    let path = text.split(['"', '>']).next().unwrap_or_default();
    path.chars().map(|char| if char.is_ascii_digit() { '#' } else { char }).collect()
}
