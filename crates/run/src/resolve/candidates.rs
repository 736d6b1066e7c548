//! The endpoints that the level `installed` may select, with their descriptions.

use wirelab_lab::endpoints::{ENGINE, Found, describe};
use wirelab_lab::{LabError, Role, refuses_unknown_protocol};
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{self, Description, Endpoint};
use wirelab_model::protocol::Protocol;
use wirelab_plan::{Candidate, Unusable};

/// Every endpoint found, with two exceptions that studies name where they use them: the load engine, which is an
/// instrument, and other versions of a library. In a lab that starts no endpoint, all of them support every protocol.
pub fn candidates(found: &[Found], starts_endpoints: bool) -> Vec<Candidate> {
    let candidate = |found: &Found| {
        let described =
            found.endpoint.clone().and_then(|one| if starts_endpoints { honest(&one) } else { Ok(imagined(&one)) });
        Candidate { name: found.name.clone(), description: described.map_err(|error| Unusable(error.to_string())) }
    };
    found.iter().filter(|found| found.name != ENGINE && !found.is_other_version()).map(candidate).collect()
}

/// The description of an endpoint that refuses an unknown protocol in every role, as the contract demands. An endpoint
/// that accepts it would end a run before its first trial.
fn honest(endpoint: &Endpoint) -> Result<Description, LabError> {
    let description = describe(endpoint)?;
    let scratch = tempfile::tempdir().map_err(|error| {
        LabError::unsupported(format!("cannot make a folder to ask `{}` in", endpoint.name)).because(error)
    })?;
    let roles = [(Role::Server, &description.server), (Role::Client, &description.client)];
    for (role, _) in roles.iter().filter(|(_, plays)| plays.is_some()) {
        refuses_unknown_protocol(endpoint, *role, scratch.path(), 1)?;
    }
    Ok(description)
}

fn imagined(endpoint: &Endpoint) -> Description {
    let role = || {
        Some(endpoint::Role {
            protocols: Protocol::ALL.into(),
            features: Vec::new(),
            exposition: false,
            own_requests: false,
            until_steady: false,
        })
    };
    Description {
        contract: CONTRACT_VERSION,
        name: endpoint.name.clone(),
        library: String::new(),
        version: String::new(),
        language: String::new(),
        server: role(),
        client: role(),
        sidecar: None,
        control_plane: None,
    }
}
