//! A short run in a folder of its own that is disturbed, and what must hold when it is continued.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Output, Stdio};

use serde_json::Value;
use wirelab_testkit::{only_run, run, wirelab};

use crate::traced;

/// The variable in the environment of all processes of an attempt.
const MARK: &str = "WIRELAB_ATTEMPT";

/// A short run in a folder of its own.
pub struct Attempt {
    pub lab: String,
    pub folder: PathBuf,
}

impl Attempt {
    pub fn new(lab: &str, home: &Path, name: &str) -> Self {
        let folder = home.join(name);
        fs::create_dir(&folder).unwrap();
        Self { lab: lab.to_owned(), folder }
    }

    fn args(&self) -> Vec<&str> {
        let args = ["run", "quick", "--lab", &self.lab, "--quiet", "--set", "protocol=h1,h2", "--set", "payload=1 KiB"];
        let short = ["--set", "requests=20", "--set", "blocks.min=1", "--set", "blocks.max=1"];
        // Links are between two places.
        let placed: &[&str] = if self.lab == "netns" { &["--set", "placement=same-node"] } else { &[] };
        [&args[..], &short, placed].concat()
    }

    /// Runs wirelab under `strace` with these options.
    pub fn traced(&self, options: &[&str]) -> Output {
        traced::run(&self.folder, options, &self.args())
    }

    /// Starts wirelab.
    pub fn started(&self) -> Child {
        let mut command = wirelab(&self.folder, &self.args());
        command.env(MARK, &self.folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// The command lines of the processes that are left of [`Self::started`], whatever they are and wherever they are.
    pub fn left(&self) -> Vec<String> {
        let mark = format!("{MARK}={}", self.folder.display());
        let has_mark = |folder: &Path| {
            let environment = fs::read(folder.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
        };
        let processes =
            fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(|path| has_mark(path));
        processes.map(|path| fs::read_to_string(path.join("cmdline")).unwrap_or_default().replace('\0', " ")).collect()
    }

    /// Continues the run, and compares it with a run that was not disturbed: nothing of `before`, the journal then, is
    /// lost, every trial is there once, and at most this number of trials failed, by the lab. Without a run there is
    /// nothing to continue.
    pub fn is_continued(&self, before: Option<&BTreeMap<u64, Value>>, clean: &Self, failures: usize) {
        let Some(before) = before else {
            run(&self.folder, &["resume", "--quiet"]).with_status(2);
            return;
        };
        run(&self.folder, &["resume", "--quiet"]).with_status(0);
        let after = self.entries().unwrap();
        for (number, entry) in before {
            assert_eq!(after.get(number), Some(entry), "a journalled trial is kept as it was");
        }
        let expected = clean.entries().unwrap();
        assert!(after.keys().eq(expected.keys()), "trials: {:?}, not {:?}", after.keys(), expected.keys());
        let failed: Vec<_> = after.iter().filter(|(_, entry)| entry["outcome"] == "failed").collect();
        // On a busy machine a client may be too slow for its window.
        let by_fault: Vec<_> = failed.iter().filter(|(_, entry)| entry["reason_code"] != "violation").collect();
        assert!(
            by_fault.len() <= failures && by_fault.iter().all(|(_, entry)| entry["blame"] == "lab"),
            "{by_fault:?}"
        );
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
    pub fn entries(&self) -> Option<BTreeMap<u64, Value>> {
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
