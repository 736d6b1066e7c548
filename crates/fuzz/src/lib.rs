//! Every reader of foreign text and bytes as a fuzz target.
//!
//! A target is declared once, in the module of its formats. `make test` gives each target changed copies of its inputs
//! for a moment; `make fuzz` runs it under libFuzzer, which keeps the inputs that reach new code.
//!
//! A target panics if a reader does, or if the reader breaks a rule that the target knows.

mod bytes;
pub mod endpoints;
pub mod machine;
pub mod machines;
pub mod packets;
pub mod pages;
pub mod plans;
pub mod proxies;
pub mod requests;
pub mod results;
pub mod servers;

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// Folders of kept inputs: of inputs that reach different code, and of inputs that once failed.
const CORPUS: &str = "corpus";
const REGRESSIONS: &str = "regressions";

/// A reader of a foreign format.
#[derive(Debug)]
pub struct Target {
    /// The name, also of its kept inputs.
    pub name: &'static str,
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
    /// Reads an input.
    pub read: fn(&[u8]),
}

impl Target {
    /// The inputs to begin with, and the kept ones: inputs that reach different code, and inputs that once failed.
    ///
    /// # Panics
    /// If a kept input cannot be read.
    #[must_use]
    pub fn inputs(&self) -> Vec<Vec<u8>> {
        let mut inputs = (self.seeds)();
        let own = Path::new(env!("CARGO_MANIFEST_DIR"));
        // A line each: thousands of small files would make the repository slow.
        let corpus = fs::read_to_string(own.join(CORPUS).join(format!("{}.base64", self.name))).unwrap_or_default();
        inputs.extend(corpus.lines().map(|line| STANDARD.decode(line).expect("the line is valid")));
        let entries = fs::read_dir(own.join(REGRESSIONS).join(self.name)).into_iter().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
        paths.sort();
        inputs.extend(paths.iter().map(|path| fs::read(path).expect("the file is readable")));
        inputs
    }
}

const ALL: [&[Target]; 9] = [
    plans::TARGETS,
    requests::TARGETS,
    pages::TARGETS,
    endpoints::TARGETS,
    results::TARGETS,
    machines::TARGETS,
    servers::TARGETS,
    proxies::TARGETS,
    packets::TARGETS,
];

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    ALL.into_iter().flatten()
}

/// The target of a name.
#[must_use]
pub const fn find(name: &str) -> Option<&'static Target> {
    let mut module = 0;
    while module < ALL.len() {
        let mut number = 0;
        while number < ALL[module].len() {
            if is_equal(ALL[module][number].name.as_bytes(), name.as_bytes()) {
                return Some(&ALL[module][number]);
            }
            number += 1;
        }
        module += 1;
    }
    None
}

/// Whether bytes are equal; the operator is not available to constants.
const fn is_equal(one: &[u8], other: &[u8]) -> bool {
    match (one, other) {
        ([first, one @ ..], [second, other @ ..]) => *first == *second && is_equal(one, other),
        (one, other) => one.is_empty() && other.is_empty(),
    }
}

/// Writes the inputs of all targets, each into a folder with the name of its target.
///
/// # Panics
/// If that fails.
pub fn write(folder: &Path) {
    for target in targets() {
        let folder = folder.join(target.name);
        fs::create_dir_all(&folder).expect("the folder can be made");
        for (number, input) in target.inputs().iter().enumerate() {
            fs::write(folder.join(format!("{number:04}")), input).expect("the input can be written");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn names_are_different_and_no_target_lacks_inputs() {
        let mut names = HashSet::new();
        for target in targets() {
            assert!(names.insert(target.name), "{} is there twice", target.name);
            assert!(!(target.seeds)().is_empty(), "{} has no input to begin with", target.name);
        }
    }

    #[test]
    fn kept_inputs_belong_to_a_target() {
        for kind in [CORPUS, REGRESSIONS] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind);
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(find(name.trim_end_matches(".base64")).is_some(), "{kind}/{name} belongs to no target");
            }
        }
    }
}
