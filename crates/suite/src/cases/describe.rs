//! The case of an endpoint's description.

use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{Description, Endpoint};

use crate::finding::{Finding, Stop, demand};
use crate::report::{CaseResult, Verdict};

/// Gets the description and checks everything that needs no started role.
pub fn check(endpoint: &Endpoint) -> Finding<Description> {
    let description = wirelab_lab::endpoints::describe(endpoint).map_err(|error| Stop::broken(error.to_string()))?;
    let same = |what: &str, wanted: &str, is: &str| {
        demand(wanted == is, || format!("expected {what} to be `{wanted}`; it is `{is}`"))
    };
    same("`name`", &endpoint.name, &description.name)?;
    same("`contract`", &CONTRACT_VERSION.to_string(), &description.contract.to_string())?;
    for (what, text) in
        [("library", &description.library), ("version", &description.version), ("language", &description.language)]
    {
        if text.trim().is_empty() {
            return Err(Stop::broken(format!("expected `{what}` not to be empty")));
        }
    }
    let roles = [
        ("server", &description.server),
        ("client", &description.client),
        ("sidecar", &description.sidecar),
        ("control plane", &description.control_plane),
    ];
    if roles.iter().all(|(_, role)| role.is_none()) {
        return Err(Stop::broken("expected at least one role: server, client, sidecar or control plane"));
    }
    for (name, role) in roles {
        if role.as_ref().is_some_and(|role| role.protocols.is_empty()) {
            return Err(Stop::broken(format!("expected at least one protocol of the {name}; the list is empty")));
        }
        let files = role.as_ref().is_some_and(|role| {
            name == "server"
                && role.protocols.iter().any(|protocol| protocol.is_http())
                && !role.features.contains(&wirelab_model::spec::Feature::Files)
        });
        if files {
            return Err(Stop::broken("expected every HTTP server to have the feature `files`; it is not declared"));
        }
    }
    Ok(description)
}

/// Converts the check to a result.
pub fn result(described: &Finding<Description>) -> CaseResult {
    let verdict = match described {
        Ok(_) => Verdict::Passed,
        Err(stop) => Verdict::Failed(stop.to_string()),
    };
    CaseResult::of_suite("describe prints a valid description with the endpoint's name", verdict)
}
