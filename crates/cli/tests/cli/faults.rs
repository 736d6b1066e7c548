//! Every operation with which a run changes files or starts something fails once, or wirelab is killed there. `strace`
//! injects these faults into the program as it is. Each time the run goes on, or ends with the reason and can be
//! resumed; what was journalled stays, and nothing else is left.
//!
//! `make test` takes a sample of the kinds of operations, `make faults` all operations.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use tempfile::tempdir;
use wirelab_testkit::{eventually, processes, tree};

use crate::attempt::Attempt;
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
    let operations = operations(&clean);
    assert!(operations.len() > 100, "{operations:?}");
    let is_sample = std::env::var_os("WIRELAB_FAULTS").is_none();
    let mut kinds = BTreeSet::new();
    for operation in operations {
        let is_new = kinds.insert((operation.call, operation.about.clone()));
        // The sample has the first operation of a kind, with one of the faults, of two kinds in each six.
        let faults = match (is_sample, kinds.len() % 6) {
            (false, _) => &[Fault::Error, Fault::Kill][..],
            (true, 0) if is_new => &[Fault::Error],
            (true, 3) if is_new => &[Fault::Kill],
            (true, _) => &[],
        };
        for fault in faults {
            println!("{lab}: {fault:?} at {operation:?}");
            let attempt = Attempt::new(lab, home.path(), "attempt");
            suffers(&attempt, &operation, *fault, &clean);
            fs::remove_dir_all(attempt.folder).unwrap();
        }
    }
}

/// The operations of a run without faults, from the first that concerns its folder.
fn operations(clean: &Attempt) -> Vec<Operation> {
    let names: Vec<_> = CALLS.iter().map(|(call, _)| *call).collect();
    let log = clean.folder.join("trace");
    let traced = clean.traced(&["-y", "-o", log.to_str().unwrap(), "-e", &format!("trace={}", names.join(","))]);
    assert!(traced.status.success(), "{traced:?}");
    let runs = clean.folder.join("wirelab-runs").display().to_string();
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
        let plays = |about: &String| clean.lab == "fake" && about.ends_with("/results.jsonl") && *call != "unlink";
        if let Some(about) = about.as_ref().filter(|about| changes && !plays(about)) {
            operations.push(Operation { call, error, number, about: about.clone() });
        }
    }
    operations
}

fn suffers(attempt: &Attempt, operation: &Operation, fault: Fault, clean: &Attempt) {
    let Operation { call, error, number, .. } = operation;
    let injected = match fault {
        Fault::Error => format!("inject={call}:error={error}:when={number}"),
        Fault::Kill => format!("inject={call}:signal=KILL:when={number}"),
    };
    let log = attempt.folder.join("trace");
    let traced = attempt.traced(&["-o", log.to_str().unwrap(), "-e", &format!("trace={call}"), "-e", &injected]);
    let words = String::from_utf8_lossy(&traced.stderr);
    let mark = attempt.folder.to_str().unwrap();
    match fault {
        Fault::Error => {
            let status = traced.status.code().expect("wirelab is not killed");
            assert!(status <= 1, "status {status}: {words}");
            assert!(status == 0 || words.contains("wirelab: "), "no reason: {words}");
            assert!(processes(mark).is_empty(), "left: {:?}", tree::descendants(1));
        }
        Fault::Kill => eventually("the end of every process", || processes(mark).is_empty()),
    }
    attempt.is_continued(attempt.entries().as_ref(), clean, 1);
}

/// The path at the beginning of a text, with a sign in place of digits.
fn without_digits(text: &str) -> String {
    let path = text.split(['"', '>']).next().unwrap_or_default();
    path.chars().map(|char| if char.is_ascii_digit() { '#' } else { char }).collect()
}
