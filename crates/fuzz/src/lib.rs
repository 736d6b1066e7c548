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

/// A reader of a foreign format.
#[derive(Debug)]
pub struct Target {
    /// The name, also of the folder of its kept inputs.
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
        for kind in ["corpus", "regressions"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind).join(self.name);
            let entries = fs::read_dir(folder).into_iter().flatten();
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder is readable").path()).collect();
            paths.sort();
            inputs.extend(paths.iter().map(|path| fs::read(path).expect("the file is readable")));
        }
        inputs
    }
}

/// All targets.
pub fn targets() -> impl Iterator<Item = &'static Target> {
    [
        plans::TARGETS,
        requests::TARGETS,
        pages::TARGETS,
        endpoints::TARGETS,
        results::TARGETS,
        machines::TARGETS,
        servers::TARGETS,
        proxies::TARGETS,
        packets::TARGETS,
    ]
    .into_iter()
    .flatten()
}

/// The target of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Target> {
    targets().find(|target| target.name == name)
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
        for kind in ["corpus", "regressions"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(kind);
            for entry in fs::read_dir(folder).into_iter().flatten() {
                let name = entry.unwrap().file_name().into_string().unwrap();
                assert!(find(&name).is_some(), "{kind}/{name} belongs to no target");
            }
        }
    }
}
