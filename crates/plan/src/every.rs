//! The level `installed` of endpoint factors: expands to every installed endpoint.

use serde_json::Value;
use wirelab_model::endpoint::{Description, Role};
use wirelab_model::protocol::Protocol;
use wirelab_model::selector::Selector;
use wirelab_model::study::{Factor, Study};
use wirelab_model::warning::Warning;

use crate::error::StudyError;
use crate::factor;
use crate::locate::steps;

/// Level that stands for every installed endpoint with the required protocol and role.
pub const INSTALLED: &str = "installed";

/// The factors whose levels are endpoints.
const ROLES: [&str; 3] = ["endpoint", "server", "client"];

/// A discovered endpoint with its description, or the reason why it cannot be used.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Endpoint name.
    pub name: String,
    /// Description from the endpoint itself, or the reason why it cannot be used.
    pub description: Result<Description, Unusable>,
}

/// Why an endpoint cannot be used, in words for warnings and errors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable(pub String);

/// Whether this level is the placeholder `installed` of an endpoint factor.
pub(crate) fn stands_for_all(factor: &str, level: &str) -> bool {
    ROLES.contains(&factor) && level == INSTALLED
}

/// Whether a factor of the study has the level `installed`.
#[must_use]
pub fn takes_installed(study: &Study) -> bool {
    study.factors.iter().any(|(name, factor)| takes_all(name, factor))
}

fn takes_all(name: &str, factor: &Factor) -> bool {
    matches!(factor, Factor::Values(values) if values.iter().any(|value| stands_for_all(name, &factor::level_name(value))))
}

/// Replaces the level `installed` by the endpoints that it stands for. Returns the study with a warning for each
/// endpoint that cannot be used. `study` must have its preset and command line applied
/// ([`resolve`](crate::resolve())). If the protocol varies, combinations of a protocol and an endpoint that lacks it
/// are excluded. Calls `find` only if some factor has the level.
///
/// # Errors
/// If `installed` matches no endpoint, or a factor keeps no level.
pub fn with_installed(
    mut study: Study,
    find: &mut dyn FnMut() -> Vec<Candidate>,
) -> Result<(Study, Vec<Warning>), StudyError> {
    let expanded: Vec<String> =
        study.factors.iter().filter(|(name, factor)| takes_all(name, factor)).map(|(name, _)| name.clone()).collect();
    if expanded.is_empty() {
        return Ok((study, Vec::new()));
    }
    let found = find();
    let protocols = Protocols::of(&study)?;
    let mut added = 0;
    for name in &expanded {
        let Some(Factor::Values(values)) = study.factors.get_mut(name) else { continue };
        let named: Vec<_> = values.iter().map(factor::level_name).filter(|level| level != INSTALLED).collect();
        let has = |description: &Description, protocol| supports(name, description, protocol);
        let described = found.iter().filter_map(|one| Some((&one.name, one.description.as_ref().ok()?)));
        let more: Vec<_> = described
            .filter(|(other, description)| {
                !named.contains(other) && protocols.0.iter().any(|(protocol, _)| has(description, *protocol))
            })
            .collect();
        added += more.len();
        let place = values.iter().position(|value| factor::level_name(value) == INSTALLED).unwrap_or(values.len());
        values.retain(|value| factor::level_name(value) != INSTALLED);
        values.splice(place..place, more.iter().map(|(other, _)| Value::from(other.as_str())));
        if values.is_empty() {
            return Err(
                none_installed(&format!("no endpoint as {name}"), &protocols, &found).at(steps!["factors", name])
            );
        }
        for (protocol, level) in &protocols.0 {
            let Some((factor, level)) = level else { continue };
            let unsupported: Vec<_> = more
                .iter()
                .filter(|(_, description)| !has(description, *protocol))
                .map(|(other, _)| Value::from(other.as_str()))
                .collect();
            if !unsupported.is_empty() {
                let levels = [(factor.clone(), level.as_str().into()), (name.clone(), unsupported.into())];
                study.exclude.push(Selector(levels.into()));
            }
        }
    }
    if added == 0 {
        return Err(none_installed("no further endpoint", &protocols, &found));
    }
    // Endpoints hidden by an earlier one of the same name need no warning if the earlier one works.
    let usable: Vec<String> = found.iter().filter(|one| one.description.is_ok()).map(|one| one.name.clone()).collect();
    let broken = found.into_iter().filter(|one| !usable.contains(&one.name));
    let warnings = broken.filter_map(|one| {
        let levels = expanded.iter().map(|name| format!("{name}={}", one.name)).collect();
        Some(Warning::EndpointMissing { why: one.description.err()?.0, endpoint: one.name, levels })
    });
    Ok((study, warnings.collect()))
}

fn supports(factor: &str, description: &Description, protocol: Protocol) -> bool {
    let has = |role: &Option<Role>| role.as_ref().is_some_and(|role| role.protocols.contains(&protocol));
    match factor {
        "server" => has(&description.server),
        "client" => has(&description.client),
        _ => has(&description.server) && has(&description.client),
    }
}

/// The protocols of a study, each with the factor and level that sets it, or `None` for the workload's.
struct Protocols(Vec<(Protocol, Option<(String, String)>)>);

impl Protocols {
    fn of(study: &Study) -> Result<Self, StudyError> {
        let mut protocols = Vec::new();
        for (name, factor) in &study.factors {
            let levels = factor::levels(name, factor).map_err(|error| error.at(steps!["factors", name]))?;
            let set = levels.into_iter().filter_map(|(level, set)| Some((set.protocol?, Some((name.clone(), level)))));
            protocols.extend(set);
        }
        protocols.extend(study.workload.protocol.map(|protocol| (protocol, None)));
        Ok(Self(protocols))
    }
}

/// The error if `installed` matches no endpoint. It includes why other discovered endpoints cannot be used.
fn none_installed(what: &str, protocols: &Protocols, found: &[Candidate]) -> StudyError {
    let mut tokens: Vec<_> = protocols.0.iter().map(|(protocol, _)| protocol.token()).collect();
    tokens.dedup();
    let broken: Vec<_> =
        found.iter().filter_map(|one| one.description.as_ref().err()).map(|Unusable(why)| format!("; {why}")).collect();
    const SHOWN: usize = 3;
    let rest = broken.len().saturating_sub(SHOWN);
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    StudyError::new(format!(
        "the level `{INSTALLED}` found {what} that is installed and supports {}; install one (`wirelab endpoints` \
         lists them with their requirements), or name endpoints with `--set server=…`{}{more}",
        tokens.join(" or "),
        broken.into_iter().take(SHOWN).collect::<String>()
    ))
}

#[cfg(test)]
#[path = "every_tests.rs"]
mod tests;
