//! The cases that apply to an endpoint's description.

mod control_plane;
mod deadlines;
pub mod describe;
mod exchange;
mod exposition;
mod faults;
mod life;
mod load;
mod members;
mod pages;
mod refusals;
mod resumption;
mod settings;
mod sidecar;

use wirelab_lab::Role;

use crate::case::Case;
use crate::stage::Stage;

/// Returns all cases, cheap and general ones first.
pub fn all(stage: &Stage) -> Vec<Case> {
    let mut cases = Vec::new();
    for role in [Role::Server, Role::Client] {
        let Some(abilities) = stage.subject.abilities(role) else { continue };
        let abilities = abilities.clone();
        cases.extend(refusals::cases(role, &abilities));
        for &protocol in &abilities.protocols {
            if role == Role::Server {
                cases.extend(life::of_servers(protocol));
            } else {
                cases.extend(life::of_clients(protocol));
            }
            cases.extend(exchange::cases(role, protocol, &abilities));
            cases.extend(load::cases(role, protocol));
            cases.extend(resumption::cases(role, protocol));
            cases.extend(settings::cases(role, protocol));
            if abilities.exposition {
                cases.push(exposition::case(role, protocol));
            }
            if role == Role::Client {
                cases.extend(deadlines::cases(protocol));
                cases.extend(faults::cases(protocol));
            }
        }
    }
    let sidecar = stage.subject.description.sidecar.as_ref();
    cases.extend(sidecar.into_iter().flat_map(sidecar::cases));
    let control_plane = stage.subject.description.control_plane.as_ref();
    cases.extend(control_plane.into_iter().flat_map(control_plane::cases));
    cases
}
