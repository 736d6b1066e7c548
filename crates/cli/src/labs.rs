//! All labs, by name.

use std::path::Path;

use wirelab_kubernetes::Kubernetes;
use wirelab_lab::fake::{self, Fake, Script};
use wirelab_lab::internet::{self, Internet};
use wirelab_lab::loopback::{self, Loopback};
use wirelab_lab::netns::{self, Netns};
use wirelab_lab::{Lab, LabError, LabInfo};
use wirelab_model::nearest::did_you_mean;
use wirelab_model::plan::Job;

/// Every lab.
pub const LABS: &[LabInfo] = &[loopback::INFO, netns::INFO, wirelab_kubernetes::INFO, internet::INFO, fake::INFO];

/// Opens a lab. `program` is wirelab's own file, which becomes the guard of labs with processes.
///
/// # Errors
/// If no lab has this name (the message suggests the nearest one), or if the lab cannot be opened.
pub fn open(name: &str, program: &Path) -> Result<Box<dyn Lab>, LabError> {
    if name == loopback::INFO.name {
        Ok(Box::new(Loopback::start(program)?))
    } else if name == netns::INFO.name {
        Ok(Box::new(Netns::start(program)?))
    } else if name == wirelab_kubernetes::INFO.name {
        Ok(Box::new(Kubernetes::start(program)?))
    } else if name == internet::INFO.name {
        Ok(Box::new(Internet::start(program)?))
    } else if name == fake::INFO.name {
        Ok(Box::new(Fake::new(Script::plausible())))
    } else {
        let names: Vec<_> = LABS.iter().map(|lab| lab.name).collect();
        let meant = did_you_mean(name, names.iter().copied());
        Err(LabError(format!("there is no lab `{name}`{meant}; the labs are {}", names.join(", "))))
    }
}

/// Why a lab does not support a job; `None` if it does, or if no lab has this name.
pub fn refusal(name: &str, job: &Job) -> Option<String> {
    let lab = LABS.iter().find(|lab| lab.name == name)?;
    (lab.can_be)(job).err().map(|LabError(why)| why)
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
