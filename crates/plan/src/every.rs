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
    pub description: Result<Description, String>,
}

/// Whether this level is the placeholder `installed` of an endpoint factor.
pub(crate) fn stands_for_all(factor: &str, level: &str) -> bool {
    ROLES.contains(&factor) && level == INSTALLED
}

/// Whether a factor of the study has the level `installed`.
#[must_use]
pub fn takes_installed(study: &Study) -> bool {
    study.factors.iter().any(|(name, factor)| is_open(name, factor))
}

fn is_open(name: &str, factor: &Factor) -> bool {
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
    let open: Vec<String> =
        study.factors.iter().filter(|(name, factor)| is_open(name, factor)).map(|(name, _)| name.clone()).collect();
    if open.is_empty() {
        return Ok((study, Vec::new()));
    }
    let found = find();
    let spoken = Spoken::of(&study)?;
    let mut taken = 0;
    for name in &open {
        let Some(Factor::Values(values)) = study.factors.get_mut(name) else { continue };
        let named: Vec<_> = values.iter().map(factor::level_name).filter(|level| level != INSTALLED).collect();
        let speaks = |description: &Description, protocol| role_speaks(name, description, protocol);
        let described = found.iter().filter_map(|one| Some((&one.name, one.description.as_ref().ok()?)));
        let more: Vec<_> = described
            .filter(|(other, description)| {
                !named.contains(other) && spoken.0.iter().any(|(protocol, _)| speaks(description, *protocol))
            })
            .collect();
        taken += more.len();
        let place = values.iter().position(|value| factor::level_name(value) == INSTALLED).unwrap_or(values.len());
        values.retain(|value| factor::level_name(value) != INSTALLED);
        values.splice(place..place, more.iter().map(|(other, _)| Value::from(other.as_str())));
        if values.is_empty() {
            return Err(nothing(&format!("no endpoint as {name}"), &spoken, &found).at(steps!["factors", name]));
        }
        for (protocol, level) in &spoken.0 {
            let Some((factor, level)) = level else { continue };
            let silent: Vec<_> = more
                .iter()
                .filter(|(_, description)| !speaks(description, *protocol))
                .map(|(other, _)| Value::from(other.as_str()))
                .collect();
            if !silent.is_empty() {
                let levels = [(factor.clone(), level.as_str().into()), (name.clone(), silent.into())];
                study.exclude.push(Selector(levels.into()));
            }
        }
    }
    if taken == 0 {
        return Err(nothing("no endpoint besides those that the study names", &spoken, &found));
    }
    // Endpoints hidden by an earlier one of the same name need no warning if the earlier one works.
    let usable: Vec<String> = found.iter().filter(|one| one.description.is_ok()).map(|one| one.name.clone()).collect();
    let broken = found.into_iter().filter(|one| !usable.contains(&one.name));
    let warnings = broken.filter_map(|one| {
        let levels = open.iter().map(|name| format!("{name}={}", one.name)).collect();
        Some(Warning::EndpointMissing { why: one.description.err()?, endpoint: one.name, levels })
    });
    Ok((study, warnings.collect()))
}

fn role_speaks(factor: &str, description: &Description, protocol: Protocol) -> bool {
    let speaks = |role: &Option<Role>| role.as_ref().is_some_and(|role| role.protocols.contains(&protocol));
    match factor {
        "server" => speaks(&description.server),
        "client" => speaks(&description.client),
        _ => speaks(&description.server) && speaks(&description.client),
    }
}

/// The protocols of a study, each with the factor and level that sets it, or `None` for the workload's.
struct Spoken(Vec<(Protocol, Option<(String, String)>)>);

impl Spoken {
    fn of(study: &Study) -> Result<Self, StudyError> {
        let mut spoken = Vec::new();
        for (name, factor) in &study.factors {
            let levels =
                factor::levels(name, factor).map_err(|message| StudyError::new(message).at(steps!["factors", name]))?;
            let set = levels.into_iter().filter_map(|(level, set)| Some((set.protocol?, Some((name.clone(), level)))));
            spoken.extend(set);
        }
        spoken.extend(study.workload.protocol.map(|protocol| (protocol, None)));
        Ok(Self(spoken))
    }
}

/// The error if `installed` matches no endpoint. It includes why other discovered endpoints cannot be used.
fn nothing(what: &str, spoken: &Spoken, found: &[Candidate]) -> StudyError {
    let mut protocols: Vec<_> = spoken.0.iter().map(|(protocol, _)| protocol.token()).collect();
    protocols.dedup();
    let broken: Vec<_> =
        found.iter().filter_map(|one| one.description.as_ref().err()).map(|why| format!("; {why}")).collect();
    const SHOWN: usize = 3;
    let rest = broken.len().saturating_sub(SHOWN);
    let more = if rest > 0 { format!("; and {rest} more") } else { String::new() };
    StudyError::new(format!(
        "the level `{INSTALLED}` found {what} that is installed and speaks {}; install some (`wirelab endpoints` lists them and says \
         what each needs), or name endpoints with `--set server=…`{}{more}",
        protocols.join(" or "),
        broken.into_iter().take(SHOWN).collect::<String>()
    ))
}

#[cfg(test)]
#[path = "every_tests.rs"]
mod tests;
