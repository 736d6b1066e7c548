//! The power fails during a run: of what was not synced, any part is lost. `strace` lists what a run on the lab `fake`
//! does to its files. The test plays the list up to a moment, keeps of the unsynced operations what chance decides, and
//! resumes the run from what is left.
//!
//! The model is that of fsync(2), which file systems may exceed: a synced file keeps its contents, and a folder keeps
//! its new, renamed and removed entries only when it is synced itself. Pillai et al., "All File Systems Are Not Created
//! Equal", OSDI 2014, describe such models.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use tempfile::tempdir;
use wirelab_testkit::run;

use crate::traced;

/// What a run does to the file system below `wirelab-runs` and to this folder; paths are relative to its parent.
#[derive(Debug)]
enum Operation {
    Folder(PathBuf),
    Open { path: PathBuf, is_emptied: bool },
    Write { path: PathBuf, at: usize, data: Vec<u8> },
    Resize { path: PathBuf, length: usize },
    Rename { from: PathBuf, to: PathBuf },
    Remove(PathBuf),
    Sync(PathBuf),
}

#[test]
fn what_was_journalled_survives_the_loss_of_everything_that_was_not_synced() {
    if !traced::is_possible() {
        return;
    }
    let home = tempdir().unwrap();
    let clean = home.path().join("clean");
    fs::create_dir(&clean).unwrap();
    let operations = operations(&clean);
    let expected = trials(&journal(&clean).expect("a run"));
    assert!(operations.len() > 60 && expected.len() >= 3, "{operations:?}");
    let all = std::env::var_os("WIRELAB_FAULTS").is_some();
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let (mut kept, mut begun) = (0, 0);
    for moment in 1..=operations.len() {
        if !all && !random.random_bool(0.2) {
            continue;
        }
        let left = home.path().join("left");
        fs::create_dir(&left).unwrap();
        lay_out(&what_is_left(&operations[..moment], &mut random), &left);
        let durable = durable_trials(&operations[..moment]);
        let context = format!("after {moment} operations, the last of them {}", shown(&operations[moment - 1]));
        let resumed = run(&left, &["resume", "--quiet"]);
        if resumed.status == 2 {
            assert!(durable.is_empty(), "{context}: {} trials are lost: {}", durable.len(), resumed.err);
        } else {
            assert_eq!(resumed.status, 0, "{context}: {}", resumed.err);
            let after = trials(&journal(&left).expect("a run"));
            for (number, trial) in &durable {
                assert_eq!(after.get(number), Some(trial), "{context}");
            }
            assert!(after.keys().eq(expected.keys()), "{context}: {:?}", after.keys());
            let differs = |(number, trial): &(&u64, &Value)| trial["values"] != expected[number]["values"];
            assert_eq!(after.iter().find(differs), None, "{context}");
            begun += 1;
        }
        kept += durable.len();
        fs::remove_dir_all(left).unwrap();
    }
    assert!(begun > 10 && kept > 10, "the moments cover the run: {begun}, {kept}");
}

/// Runs a study under `strace`.
fn operations(folder: &Path) -> Vec<Operation> {
    let log = folder.join("trace");
    let args = ["run", "quick", "--lab", "fake", "--quiet", "--set", "protocol=h1", "--set", "payload=1 KiB"];
    let short = ["--set", "duration=10 ms", "--set", "blocks.min=1", "--set", "blocks.max=1", "--out"];
    let runs = folder.join("wirelab-runs").display().to_string();
    let calls = "trace=mkdir,openat,write,ftruncate,rename,unlink,unlinkat,fsync,fdatasync";
    let options = ["-y", "-xx", "-s", "100000000", "-e", calls, "-o", log.to_str().unwrap()];
    let output = traced::run(folder, &options, &[&args[..], &short, &[runs.as_str()]].concat());
    assert!(output.status.success(), "{output:?}");
    let mut lengths = BTreeMap::new();
    let text = fs::read_to_string(log).unwrap();
    let below =
        |bytes: &[u8]| Path::new(std::str::from_utf8(bytes).ok()?).strip_prefix(folder).ok().map(Path::to_owned);
    text.lines().filter_map(|line| operation(line, below, &mut lengths)).collect()
}

/// Reads a line of `strace -y -xx`; `None` for a call that failed or concerns other files.
fn operation(
    line: &str,
    below: impl Fn(&[u8]) -> Option<PathBuf>,
    lengths: &mut BTreeMap<PathBuf, usize>,
) -> Option<Operation> {
    let (call, rest) = line.split_once('(')?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    if result.starts_with('-') {
        return None;
    }
    // Texts and the paths of descriptors are in hexadecimal, so quotes and brackets only enclose.
    let quoted: Vec<_> = arguments.split('"').skip(1).step_by(2).map(bytes).collect();
    let described = |text: &str| below(&bytes(text.split_once('<')?.1.split_once('>')?.0));
    Some(match call {
        "mkdir" => Operation::Folder(below(&quoted[0])?),
        "openat" if arguments.contains("O_CREAT") => {
            let (path, is_emptied) = (described(result)?, arguments.contains("O_TRUNC"));
            if is_emptied {
                lengths.insert(path.clone(), 0);
            }
            Operation::Open { path, is_emptied }
        }
        "write" => {
            let (path, mut data) = (described(arguments)?, quoted.into_iter().next()?);
            data.truncate(result.parse().ok()?);
            let length = lengths.entry(path.clone()).or_default();
            let at = *length;
            *length += data.len();
            Operation::Write { path, at, data }
        }
        "ftruncate" => {
            let (path, length) =
                (described(arguments)?, arguments.rsplit_once(' ')?.1.trim_end_matches(')').parse().ok()?);
            lengths.insert(path.clone(), length);
            Operation::Resize { path, length }
        }
        "rename" => {
            let (from, to) = (below(&quoted[0])?, below(&quoted[1])?);
            let length = lengths.remove(&from).unwrap_or_default();
            lengths.insert(to.clone(), length);
            Operation::Rename { from, to }
        }
        "unlink" => Operation::Remove(below(&quoted[0])?),
        "unlinkat" => Operation::Remove(described(arguments)?.join(String::from_utf8(quoted[0].clone()).ok()?)),
        "fsync" | "fdatasync" => Operation::Sync(described(arguments)?),
        _ => return None,
    })
}

/// The bytes of `\x41\x42`.
fn bytes(hexadecimal: &str) -> Vec<u8> {
    hexadecimal.split("\\x").skip(1).map(|digits| u8::from_str_radix(&digits[..2], 16).unwrap()).collect()
}

/// A file's number, or `None` for a folder.
type Entry = Option<usize>;

/// Files by path, and the contents of files by number.
#[derive(Default)]
struct Disk {
    entries: BTreeMap<PathBuf, Entry>,
    contents: Vec<Vec<u8>>,
}

/// The disk after the power failed. Each operation that was not synced afterwards is lost with a probability of one
/// half, and half of the last write may be lost.
fn what_is_left(operations: &[Operation], random: &mut ChaCha8Rng) -> Disk {
    let mut disk = Disk::default();
    // Paths as the program saw them, to the numbers of their files.
    let mut seen: BTreeMap<PathBuf, usize> = BTreeMap::new();
    for (number, operation) in operations.iter().enumerate() {
        let later = &operations[number + 1..];
        let folder_is_synced = |path: &Path| {
            let above = path.parent().unwrap_or(Path::new(""));
            later.iter().any(|operation| matches!(operation, Operation::Sync(synced) if synced == above))
        };
        match operation {
            Operation::Folder(path) => {
                if folder_is_synced(path) || random.random() {
                    disk.entries.insert(path.clone(), None);
                }
            }
            Operation::Open { path, is_emptied } => {
                let is_new = !seen.contains_key(path);
                let file = *seen.entry(path.clone()).or_insert(disk.contents.len());
                if is_new {
                    disk.contents.push(Vec::new());
                    if folder_is_synced(path) || random.random() {
                        disk.entries.insert(path.clone(), Some(file));
                    }
                } else if *is_emptied && (file_is_synced(path, later) || random.random()) {
                    disk.contents[file].clear();
                }
            }
            Operation::Write { path, at, data } => {
                let is_kept = file_is_synced(path, later);
                if is_kept || random.random() {
                    let length = if is_kept || random.random() { data.len() } else { data.len() / 2 };
                    let contents = &mut disk.contents[seen[path]];
                    contents.resize(contents.len().max(at + length), 0);
                    contents[*at..at + length].copy_from_slice(&data[..length]);
                }
            }
            Operation::Resize { path, length } => {
                if file_is_synced(path, later) || random.random() {
                    disk.contents[seen[path]].resize(*length, 0);
                }
            }
            Operation::Rename { from, to } => {
                let file = seen.remove(from).expect("a renamed file was opened");
                seen.insert(to.clone(), file);
                if folder_is_synced(to) || random.random() {
                    disk.entries.remove(from);
                    disk.entries.insert(to.clone(), Some(file));
                }
            }
            Operation::Remove(path) => {
                seen.remove(path);
                if folder_is_synced(path) || random.random() {
                    disk.entries.remove(path);
                }
            }
            Operation::Sync(_) => {}
        }
    }
    disk
}

/// Whether a file is synced before it is renamed or removed. Nothing is written to renamed files.
fn file_is_synced(path: &Path, later: &[Operation]) -> bool {
    let ends = |operation: &&Operation| match operation {
        Operation::Sync(other) | Operation::Remove(other) | Operation::Rename { from: other, .. } => other == path,
        _ => false,
    };
    matches!(later.iter().find(ends), Some(Operation::Sync(_)))
}

/// Writes files and folders whose own folder is there.
fn lay_out(disk: &Disk, folder: &Path) {
    let mut there = BTreeSet::from([PathBuf::new()]);
    for (path, entry) in &disk.entries {
        if !path.parent().is_some_and(|parent| there.contains(parent)) {
            continue;
        }
        match entry {
            None => {
                fs::create_dir(folder.join(path)).unwrap();
                there.insert(path.clone());
            }
            Some(file) => fs::write(folder.join(path), &disk.contents[*file]).unwrap(),
        }
    }
}

/// The trials that were synced to the journal.
fn durable_trials(operations: &[Operation]) -> BTreeMap<u64, Value> {
    let is_journal = |path: &Path| path.ends_with("journal.jsonl");
    let synced = operations.iter().rposition(|one| matches!(one, Operation::Sync(path) if is_journal(path)));
    let written = operations[..synced.unwrap_or(0)].iter().filter_map(|one| match one {
        Operation::Write { path, data, .. } if is_journal(path) => Some(data.as_slice()),
        _ => None,
    });
    trials(&String::from_utf8(written.collect::<Vec<_>>().concat()).unwrap())
}

fn trials(journal: &str) -> BTreeMap<u64, Value> {
    let entries = journal.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    entries.filter_map(|entry| Some((entry["number"].as_u64()?, entry))).collect()
}

/// The journal of the only run, or `None` without a run.
fn journal(folder: &Path) -> Option<String> {
    let run = fs::read_dir(folder.join("wirelab-runs")).ok()?.next()?.unwrap().path();
    fs::read_to_string(run.join("journal.jsonl")).ok()
}

fn shown(operation: &Operation) -> String {
    match operation {
        Operation::Write { path, at, data } => format!("Write {} bytes at {at} of {}", data.len(), path.display()),
        other => format!("{other:?}"),
    }
}
