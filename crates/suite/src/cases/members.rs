//! Common parts of the roles that read a file of servers: sidecars and control planes.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use wirelab_lab::Role;
use wirelab_model::endpoint::Role as Abilities;
use wirelab_model::protocol::Protocol;

use crate::case::Case;
use crate::cases::refusals::{demand_refusal, set};
use crate::conversation::{Answer, Server};
use crate::finding::{Finding, Stop};
use crate::pair::LOCALHOST;
use crate::stage::Stage;

/// A value that an endpoint must refuse: description, location, value.
pub type InvalidValue = (&'static str, &'static str, fn() -> Value);

/// Cases of refusal: invalid values, and protocols that the role does not declare. `spec` creates a spec for a given
/// file.
pub fn refusals(
    role: Role,
    abilities: &Abilities,
    unheard: &'static [InvalidValue],
    spec: fn(Protocol, &Path) -> Value,
) -> Vec<Case> {
    let mut cases = Vec::new();
    if let Some(&protocol) = abilities.protocols.first() {
        cases.extend(unheard.iter().map(|(name, pointer, value)| {
            Case::new(role, protocol, format!("{name} is unsupported (127)"), move |stage| {
                let mut spec = spec(protocol, &file(stage, &[])?);
                set(&mut spec, pointer, value());
                demand_refusal(stage, role, &spec, name)
            })
        }));
    }
    for other in Protocol::ALL.into_iter().filter(|other| !abilities.protocols.contains(other)) {
        let name = "a protocol that it does not declare is unsupported (127)";
        cases.push(Case::new(role, other, name, move |stage| {
            demand_refusal(stage, role, &spec(other, &file(stage, &[])?), name)
        }));
    }
    cases
}

/// Creates a file with the addresses of servers.
pub fn file(stage: &Stage, servers: &[&Server<'_>]) -> Finding<PathBuf> {
    let path = stage.fresh("members.json");
    name(&path, servers)?;
    Ok(path)
}

/// Writes the addresses of servers to the file.
pub fn name(path: &Path, servers: &[&Server<'_>]) -> Finding {
    let places: Vec<_> = servers.iter().map(|server| SocketAddr::new(LOCALHOST, server.port)).collect();
    fs::write(path, json!(places).to_string())
        .map_err(|error| Stop::skip(format!("the suite cannot write {}: {error}", path.display())))
}

/// Returns the value of an accepted answer; any other answer breaks the contract.
pub fn accepted<T>(answer: Answer<T>) -> Finding<T> {
    match answer {
        Answer::Accepted(value) => Ok(value),
        other => Err(Stop::broken(format!("expected it to accept the spec; {}", other.describe()))),
    }
}
