//! The setup of a case: the endpoint under test, its peer, their files, one folder per case.

use std::cell::{Cell, RefCell};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wirelab_lab::{Process, Role};
use wirelab_model::endpoint::{Description, Endpoint, Role as Abilities};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

use crate::finding::{Finding, Stop};
use crate::material::Material;
use crate::set_up_error::SetUpError;

/// Maximum number of log lines in the reason of a failure.
const LOG_LINES: usize = 6;

/// The resources of a case.
pub struct Stage {
    /// The endpoint under test.
    pub subject: Party,
    /// The peer, which keeps the contract.
    pub reference: Party,
    /// Certificates and documents.
    pub material: Material,
    step_timeout: Duration,
    scratch: PathBuf,
    serial: Cell<u32>,
    logs: RefCell<Vec<PathBuf>>,
}

/// An endpoint with its description.
#[derive(Debug)]
pub struct Party {
    /// Command and environment.
    pub endpoint: Endpoint,
    pub description: Description,
}

impl Party {
    /// The declared abilities in a role.
    pub fn abilities(&self, role: Role) -> Option<&Abilities> {
        match role {
            Role::Server => self.description.server.as_ref(),
            Role::Client => self.description.client.as_ref(),
            Role::Sidecar(_) => self.description.sidecar.as_ref(),
            Role::ControlPlane => self.description.control_plane.as_ref(),
        }
    }

    /// Whether it declares this role, protocol and feature.
    pub fn can(&self, role: Role, protocol: Protocol, feature: Feature) -> bool {
        self.abilities(role).is_some_and(|can| can.protocols.contains(&protocol) && can.features.contains(&feature))
    }
}

impl Stage {
    /// Creates the files that all cases share.
    pub fn set(
        endpoint: &Endpoint,
        description: Description,
        reference: &Endpoint,
        scratch: &Path,
        step_timeout: Duration,
    ) -> Result<Self, SetUpError> {
        let scratch = scratch.join(format!("suite-{}", endpoint.name));
        let scratch = std::path::absolute(&scratch).unwrap_or(scratch);
        let of_reference = wirelab_lab::endpoints::describe(reference)
            .map_err(|error| SetUpError::new(format!("asking the reference endpoint `{}`", reference.name), error))?;
        let material = Material::make(&scratch.join("material"))?;
        Ok(Self {
            subject: Party { endpoint: endpoint.clone(), description },
            reference: Party { endpoint: reference.clone(), description: of_reference },
            material,
            step_timeout,
            scratch,
            serial: Cell::new(0),
            logs: RefCell::default(),
        })
    }

    /// The deadline of the next step.
    pub fn deadline(&self) -> Instant {
        Instant::now() + self.step_timeout
    }

    /// A unique path.
    pub fn fresh(&self, name: &str) -> PathBuf {
        self.serial.set(self.serial.get() + 1);
        self.scratch.join(format!("{:05}-{name}", self.serial.get()))
    }

    /// Starts an endpoint with any spec, valid or not.
    pub fn start(&self, party: &Party, role: Role, spec: &serde_json::Value) -> Finding<Box<dyn Process>> {
        let path = self.fresh("spec.json");
        fs::write(&path, spec.to_string())
            .map_err(|error| Stop::broken(format!("the suite cannot write {}: {error}", path.display())))?;
        let log = path.with_extension("log");
        self.logs.borrow_mut().push(log.clone());
        wirelab_lab::LocalProcess::start(&party.endpoint, role, &path, &log, None)
            .map(|process| Box::new(process) as Box<dyn Process>)
            .map_err(|error| Stop::broken(format!("`{}` as {}: {error}", party.endpoint.name, role.word())))
    }

    /// The reason, followed by the last lines of the case's logs.
    pub fn with_log(&self, reason: &str) -> String {
        let mut text = reason.to_owned();
        for log in self.logs.borrow().iter() {
            let content = fs::read(log).unwrap_or_default();
            let content = String::from_utf8_lossy(&content);
            let lines: Vec<_> = content.lines().filter(|line| !line.trim().is_empty()).collect();
            for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
                text.push_str("\nlog: ");
                text.extend(line.chars().take(200));
            }
        }
        text
    }

    /// Forgets the logs of a finished case.
    pub fn clear(&self) {
        self.logs.borrow_mut().clear();
    }
}
