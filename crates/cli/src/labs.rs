//! All labs, by name.

use wirelab_lab::{Lab, LabError, LabInfo, Opening, fake, internet, loopback, netns};
use wirelab_model::nearest::did_you_mean;

/// Every lab.
pub static LABS: [&LabInfo; 6] =
    [&loopback::INFO, &netns::INFO, &wirelab_hosts::INFO, &wirelab_kubernetes::INFO, &internet::INFO, &fake::INFO];

/// The lab of this name.
///
/// # Errors
/// If no lab has this name; the message has the nearest one.
pub fn find(name: &str) -> Result<&'static LabInfo, LabError> {
    LABS.into_iter().find(|lab| lab.name == name).ok_or_else(|| {
        let names = LABS.map(|lab| lab.name);
        let meant = did_you_mean(name, names.iter().copied());
        LabError::unsupported(format!("there is no lab `{name}`{meant}"))
            .remedy(format!("the labs are {}", names.join(", ")))
    })
}

/// Opens a lab.
///
/// # Errors
/// If no lab has this name, or it cannot be opened.
pub fn open(name: &str, opening: &Opening<'_>) -> Result<Box<dyn Lab>, LabError> {
    (find(name)?.open)(opening)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn an_unknown_lab_is_refused_with_the_nearest_name_and_all_names() {
        let refusal = |name| open(name, &Opening::by(Path::new("/nowhere"))).err().unwrap().to_string();
        assert_eq!(
            refusal("loopbak"),
            "there is no lab `loopbak`, did you mean `loopback`; the labs are loopback, netns, hosts, kubernetes, internet, fake"
        );
        assert_eq!(
            refusal("xyz"),
            "there is no lab `xyz`; the labs are loopback, netns, hosts, kubernetes, internet, fake"
        );
    }
}
