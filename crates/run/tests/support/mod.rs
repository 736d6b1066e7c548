//! Runs of studies in a lab that starts nothing.

use std::path::Path;
use std::time::Duration;

use wirelab_lab::Lab;
use wirelab_lab::endpoints::Found;
use wirelab_model::endpoint::Endpoint;
use wirelab_run::{Create, Limits, Run};

/// A run of a study, with endpoints of these names; it waits for no process to end.
pub fn created(parent: &Path, study: &str, endpoints: &[&str], lab: &dyn Lab) -> Run {
    let study = wirelab_plan::parse(study, "study.toml").unwrap();
    let (plan, _) = wirelab_plan::plan(&study).unwrap();
    let mut run = Run::create(Create {
        may_load: false,
        parent,
        study,
        preset: None,
        set: Vec::new(),
        plan,
        warnings: Vec::new(),
        endpoints: endpoints.iter().map(|name| found(name)).collect(),
        lab,
    })
    .unwrap();
    run.set_limits(Limits { exit: Duration::ZERO, ..Limits::default() });
    run
}

fn found(name: &str) -> Found {
    let endpoint = Endpoint {
        name: name.to_owned(),
        command: vec!["never started".to_owned()],
        environment: Default::default(),
        folder: None,
        installation: None,
    };
    Found { name: name.to_owned(), folder: None, endpoint: Ok(endpoint), installation: None }
}
