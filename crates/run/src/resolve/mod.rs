//! From a study to a plan for this machine: the additions of the command line, the installed endpoints, the lab.

mod candidates;
mod congestion;
mod private;

use std::net::SocketAddr;

use wirelab_lab::LabInfo;
use wirelab_lab::endpoints::{self, Found};
use wirelab_model::plan::{Job, Plan};
use wirelab_model::study::{Artifact, Study};
use wirelab_model::warning::Warning;
use wirelab_observe::film::ABOUT as FILM;
use wirelab_plan::{StudyError, polite};

use crate::resolve::candidates::candidates;

/// Additions to a study.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// The lab, instead of the study's.
    pub lab: Option<String>,
    /// Names of further observers.
    pub observers: Vec<String>,
    /// Further files to keep of each trial.
    pub keep: Vec<Artifact>,
    /// Address for Prometheus.
    pub metrics: Option<SocketAddr>,
}

impl Additions {
    /// Applies the additions.
    pub fn apply(self, study: &mut Study) {
        if let Some(lab) = &self.lab {
            wirelab_plan::move_to(study, lab);
        }
        // A filmed trial measures none of the metrics that the study compares.
        if self.observers.iter().any(|name| name == FILM.name) {
            study.compare.primary.clear();
            study.compare.metrics = FILM.metrics.iter().map(|metric| metric.name.to_owned()).collect();
        }
        if !self.observers.is_empty() {
            let defaults = || wirelab_observe::default_set().into_iter().map(str::to_owned).collect();
            add(study.observers.get_or_insert_with(defaults), self.observers);
        }
        add(&mut study.keep, self.keep);
        study.metrics = self.metrics.or(study.metrics);
    }
}

/// Appends the elements that the list does not have.
fn add<T: PartialEq>(list: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !list.contains(&one) {
            list.push(one);
        }
    }
}

/// A study with its plan for this machine.
#[derive(Debug)]
pub struct Resolved {
    /// The study without omitted levels and cells.
    pub study: Study,
    pub plan: Plan,
    /// Warnings about omitted levels and cells, and about defaults that this machine forbids.
    pub warnings: Vec<Warning>,
    /// All endpoints, with the browsers.
    pub endpoints: Vec<Found>,
}

/// Plans a study for the installed endpoints and for its lab (`None`: the lab is unknown). Without `may_load`, hosts of
/// other owners get no A/A twins, and names of sites are looked up. Starts no process but endpoints that describe
/// themselves.
///
/// # Errors
/// If the study cannot be planned, or nothing of it can run here.
pub fn resolve(
    study: Study,
    mut endpoints: Vec<Found>,
    browsers: Vec<Found>,
    lab: Option<&LabInfo>,
    may_load: bool,
) -> Result<Resolved, StudyError> {
    let starts_endpoints = lab.is_some_and(|lab| lab.starts_endpoints);
    let (study, mut warnings) = wirelab_plan::with_installed(study, &mut || candidates(&endpoints, starts_endpoints))?;
    // Browsers load only pages, so the level `installed` does not select them.
    endpoints.extend(browsers);
    let (study, more) = wirelab_plan::only_installed(study, &mut |name| unusable(&endpoints, name, starts_endpoints))?;
    warnings.extend(more);
    let refusal = |job: &Job| (lab?.supports)(job).err().map(|error| error.to_string());
    let defaults = lab.map(|lab| (lab.defaults)()).unwrap_or_default();
    let (study, mut plan, more) = wirelab_plan::placed(study, &defaults, &refusal)?;
    warnings.extend(more);
    let is_permitted = |congestion| lab.is_none_or(|lab| (lab.permits)(congestion));
    warnings.extend(congestion::permit(&study, &mut plan, is_permitted));
    private::fix_behind_proxies(&mut plan, private::addresses);
    if !may_load {
        private::fix_addresses(&mut plan, private::addresses);
        polite::remove_twins(&mut plan);
    }
    Ok(Resolved { study, plan, warnings, endpoints })
}

/// The reason why an endpoint cannot be used; `None` if it can. In a lab that starts no endpoint, a folder suffices.
fn unusable(found: &[Found], name: &str, starts_endpoints: bool) -> Option<String> {
    let Some(one) = found.iter().find(|one| one.name == name) else {
        return Some(endpoints::unknown(name, found));
    };
    match &one.endpoint {
        Ok(_) if !starts_endpoints => None,
        Ok(endpoint) => endpoints::describe(endpoint).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_are_appended_once_and_a_film_replaces_the_metrics_to_compare() {
        let text = r#"
            name = "s"
            title = "t"
            question = "q?"
            keep = ["qlog"]
            [factors]
            protocol = ["h2", "h1"]
            [compare]
            factor = "protocol"
            baseline = "h1"
            metrics = ["response_median"]
        "#;
        let mut study = wirelab_plan::parse(text, "a test").unwrap();
        let keep = vec![Artifact::Pcap, Artifact::Qlog];
        Additions { lab: Some("fake".to_owned()), keep, ..Additions::default() }.apply(&mut study);
        assert_eq!((&*study.lab, study.keep.len(), &study.observers), ("fake", 2, &None));
        assert_eq!(study.compare.metrics, ["response_median"]);
        Additions { observers: vec![FILM.name.to_owned(); 2], ..Additions::default() }.apply(&mut study);
        let observers = study.observers.unwrap();
        assert_eq!(observers.len(), wirelab_observe::default_set().len() + 1);
        assert!(study.compare.metrics.iter().all(|name| FILM.metrics.iter().any(|metric| metric.name == name)));
    }
}
