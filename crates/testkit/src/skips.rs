//! Skips: parts of tests that this machine cannot test, with typed reasons.
//!
//! A skip is recorded and printed, and `make test` lists all of them at the end. With `WIRELAB_TESTS=strict` a skip
//! that `tests/skips.toml` does not list is a failure.

use std::env;
use std::fmt;
use std::fs;
use std::panic::Location;

use serde::Deserialize;

use crate::record::{self, Record};
use crate::root;

/// The reason why a test cannot run on this machine.
#[derive(Debug, Clone)]
pub enum Skip {
    /// A program is not installed.
    MissingProgram {
        /// Its name.
        program: String,
        remedy: String,
    },
    /// The kernel does not allow this user to create network namespaces.
    NoNetworkNamespaces {
        /// The message of the kernel or of `wirelab doctor`.
        why: String,
    },
    /// The machine has no IPv6, not even `::1`.
    NoIpv6,
    /// A browser cannot be started, or does not trust the certificates of tests.
    NoBrowser {
        /// Its name.
        browser: String,
        /// The missing part.
        why: String,
    },
    /// The test cluster cannot start.
    NoCluster {
        /// The message of `tests/cluster/cluster.sh check`.
        why: String,
    },
    /// A feature of the kernel is missing or forbidden.
    KernelLacks {
        /// The feature.
        what: String,
        /// The observation.
        why: String,
    },
    /// The host of this virtual machine took processor time during every measurement.
    HostStealsProcessors {
        /// The last measurement.
        measured: String,
    },
    /// Other work on the machine delayed a part of the test so much that this part proves nothing.
    MachineTooBusy {
        /// The part.
        what: String,
        /// The observation.
        why: String,
    },
}

impl Skip {
    /// The code in `tests/skips.toml`.
    pub fn code(&self) -> &'static str {
        match self {
            Self::MissingProgram { .. } => "missing-program",
            Self::NoNetworkNamespaces { .. } => "no-network-namespaces",
            Self::NoIpv6 => "no-ipv6",
            Self::NoBrowser { .. } => "no-browser",
            Self::NoCluster { .. } => "no-cluster",
            Self::KernelLacks { .. } => "kernel-lacks",
            Self::HostStealsProcessors { .. } => "host-steals-processors",
            Self::MachineTooBusy { .. } => "machine-too-busy",
        }
    }
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingProgram { program, remedy } => write!(f, "`{program}` is not installed; remedy: {remedy}"),
            Self::NoNetworkNamespaces { why } => write!(f, "network namespaces cannot be made: {why}"),
            Self::NoIpv6 => f.write_str("this machine has no IPv6"),
            Self::NoBrowser { browser, why } => write!(f, "{browser} cannot be used: {why}"),
            Self::NoCluster { why } => write!(f, "there is no test cluster: {why}"),
            Self::KernelLacks { what, why } => write!(f, "{what} is missing: {why}"),
            Self::HostStealsProcessors { measured } => {
                write!(f, "the host took processor time during every measurement; the last one: {measured}")
            }
            Self::MachineTooBusy { what, why } => write!(f, "the machine was too busy for {what}: {why}"),
        }
    }
}

/// Records that the whole test is skipped. The test returns next.
///
/// # Panics
/// In strict mode, if `tests/skips.toml` does not list the test with this reason.
#[track_caller]
pub fn skip(reason: Skip) {
    record_skip(&reason, false);
}

/// Records that a part of the test is skipped. The test goes on with its other parts.
///
/// # Panics
/// In strict mode, if `tests/skips.toml` does not list the test with this reason.
#[track_caller]
pub fn skip_part(reason: Skip) {
    record_skip(&reason, true);
}

#[track_caller]
fn record_skip(reason: &Skip, is_part: bool) {
    let test = record::test_name(Location::caller());
    let is_ignored = !is_part && record::note_whole_skip();
    record::add(&Record::Skip {
        test: test.clone(),
        code: reason.code().to_owned(),
        reason: reason.to_string(),
        is_part,
        is_ignored,
    });
    if env::var("WIRELAB_TESTS").is_ok_and(|mode| mode == "strict") {
        let list = listed();
        let Some(accepted) = list.iter().find(|entry| entry.test == test && entry.code == reason.code()) else {
            panic!("skipped ({}), and tests/skips.toml does not list it for {test}: {reason}", reason.code());
        };
        eprintln!("accepted by tests/skips.toml: {}", accepted.reason);
    }
}

/// A skip that strict mode accepts.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    test: String,
    code: String,
    reason: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    skip: Vec<Listed>,
}

fn listed() -> Vec<Listed> {
    let path = root().join("tests/skips.toml");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let list: List = toml::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    list.skip
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_skip_has_a_known_code_and_a_reason() {
        let text = String::new;
        let codes = [
            Skip::MissingProgram { program: text(), remedy: text() },
            Skip::NoNetworkNamespaces { why: text() },
            Skip::NoIpv6,
            Skip::NoBrowser { browser: text(), why: text() },
            Skip::NoCluster { why: text() },
            Skip::KernelLacks { what: text(), why: text() },
            Skip::HostStealsProcessors { measured: text() },
            Skip::MachineTooBusy { what: text(), why: text() },
        ]
        .map(|skip| skip.code());
        for entry in listed() {
            assert!(codes.contains(&entry.code.as_str()), "{entry:?}: the codes are {codes:?}");
            assert!(entry.test.contains("::") && entry.reason.len() > 20, "{entry:?}");
        }
    }
}
