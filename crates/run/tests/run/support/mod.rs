//! Runs of studies in a lab that starts no processes.
#![allow(dead_code, unused_imports, unused_macros, reason = "each test file uses what it needs")]

mod lab;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use wirelab_lab::endpoints::Found;
use wirelab_lab::{Lab, Launch, Role};
use wirelab_model::endpoint::Endpoint;
use wirelab_model::plan::Plan;
use wirelab_model::spec::{ClientSpec, ServerSpec};
use wirelab_model::study::Study;
use wirelab_model::units::Share;
use wirelab_run::{Create, Limits, Run, RunError};

pub use lab::{Changed, Changes};

/// A study of three seconds on an overlay. A third server starts after one second, and the first one is killed after
/// two. `setting` is an additional setting of its workload; the baseline is the second protocol.
pub fn coming_and_going(setting: &str, protocols: [&str; 2]) -> String {
    let [other, baseline] = protocols;
    format!(
        r#"
name = "coming-and-going"
title = "Coming and going"
question = "Which parts get the new list of servers?"
lab = "fake"
observers = []
[workload]
network = "overlay"
placement = "lan"
servers = "2 far"
duration = "3 s"
pause = "10 ms"
{setting}
[factors]
protocol = ["{other}", "{baseline}"]
[timeline]
actions = [
    {{ name = "T2", at = "33 %", servers = "3 far" }},
    {{ name = "T3", at = "66 %", kill = 0 }},
]
[compare]
factor = "protocol"
baseline = "{baseline}"
[blocks]
min = 1
max = 1
"#
    )
}

/// A run of a study, with endpoints of these names.
pub fn created(parent: &Path, study: &str, endpoints: &[&str], lab: &dyn Lab) -> Run {
    let study = wirelab_plan::parse(study, "study.toml").unwrap();
    let (plan, _) = wirelab_plan::plan(&study).unwrap();
    planned(parent, study, plan, endpoints, lab).unwrap()
}

/// A run of any plan. It does not wait for processes to end.
pub fn planned(parent: &Path, study: Study, plan: Plan, endpoints: &[&str], lab: &dyn Lab) -> Result<Run, RunError> {
    planting(parent, Study { planted: Share(0.0), ..study }, plan, endpoints, lab)
}

/// The same with the study's planted effects.
pub fn planting(parent: &Path, study: Study, plan: Plan, endpoints: &[&str], lab: &dyn Lab) -> Result<Run, RunError> {
    let mut run = Run::create(Create {
        commit: None,
        may_load: false,
        parent,
        study,
        preset: None,
        set: Vec::new(),
        plan,
        warnings: Vec::new(),
        endpoints: endpoints.iter().map(|name| found(name)).collect(),
        lab,
    })?;
    run.set_limits(Limits { exit: Duration::ZERO, ..Limits::default() });
    Ok(run)
}

/// A completed run of a study, with endpoints of these names.
pub fn executed(parent: &Path, study: &str, endpoints: &[&str], lab: &mut dyn Lab) -> Run {
    let mut run = created(parent, study, endpoints, lab);
    // A run without a successful trial is given up, which is no error.
    run.execute(lab, &mut |_| {}, &AtomicBool::new(false)).unwrap();
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

/// The specs of the servers and clients that a lab started.
#[derive(Default)]
pub struct Started {
    pub servers: Vec<ServerSpec>,
    pub clients: Vec<ClientSpec>,
}

impl Started {
    /// Records the spec of a server or client; returns any other spec.
    pub fn note(&mut self, launch: &Launch<'_>) -> Option<String> {
        let text = std::fs::read_to_string(launch.spec).unwrap();
        match launch.role {
            Role::Server => self.servers.push(serde_json::from_str(&text).unwrap()),
            Role::Client => self.clients.push(serde_json::from_str(&text).unwrap()),
            Role::Sidecar(_) | Role::ControlPlane => return Some(text),
        }
        None
    }
}
