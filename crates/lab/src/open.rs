//! The labs that there are, by name.

use std::path::Path;

use crate::fake::{self, Fake, Script};
use crate::internet::{self, Internet};
use crate::kubernetes::{self, Kubernetes};
use crate::loopback::{self, Loopback};
use crate::netns::{self, Netns};
use crate::{Lab, LabError};

/// What there is to say of a lab.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LabInfo {
    /// Its name in study files and on the command line.
    pub name: &'static str,
    /// What it is, in one sentence.
    pub summary: &'static str,
    /// The privilege or kernel feature that it needs; absent: none.
    pub needs: Option<&'static str>,
}

/// Every lab.
pub const LABS: &[LabInfo] = &[loopback::INFO, netns::INFO, kubernetes::INFO, internet::INFO, fake::INFO];

/// Opens a lab. `program` is wirelab's own file, which becomes the guard of labs with processes.
///
/// # Errors
/// If there is no lab of that name (the message has the nearest one), or it cannot be opened.
pub fn open(name: &str, program: &Path) -> Result<Box<dyn Lab>, LabError> {
    if name == loopback::INFO.name {
        Ok(Box::new(Loopback::start(program)?))
    } else if name == netns::INFO.name {
        Ok(Box::new(Netns::start(program)?))
    } else if name == kubernetes::INFO.name {
        Ok(Box::new(Kubernetes::start(program)?))
    } else if name == internet::INFO.name {
        Ok(Box::new(Internet::start(program)?))
    } else if name == fake::INFO.name {
        Ok(Box::new(Fake::new(Script::plausible())))
    } else {
        let names: Vec<_> = LABS.iter().map(|lab| lab.name).collect();
        Err(LabError(format!("there is no lab `{name}`{}; the labs are {}", nearest(name, &names), names.join(", "))))
    }
}

/// `, did you mean X` where there is a word that is near enough to be meant.
pub(crate) fn nearest(word: &str, known: &[&str]) -> String {
    let score = |candidate: &&&str| (strsim::jaro_winkler(word, candidate) * 1000.0) as u32;
    match known.iter().max_by_key(score) {
        Some(best) if score(&best) >= 700 => format!(", did you mean `{best}`"),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_lab_is_refused_with_the_nearest_name_and_all_names() {
        let refusal = |name| open(name, Path::new("/nowhere")).err().unwrap().to_string();
        assert_eq!(
            refusal("loopbak"),
            "there is no lab `loopbak`, did you mean `loopback`; the labs are loopback, netns, kubernetes, internet, fake"
        );
        assert_eq!(refusal("xyz"), "there is no lab `xyz`; the labs are loopback, netns, kubernetes, internet, fake");
    }
}
