//! The descriptions of the endpoints in this crate.

use wirelab_contract::CONTRACT_VERSION;
use wirelab_contract::endpoint::{Description, Role};
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::Feature;

use crate::lock_file::version;

/// The name of the built-in endpoint.
pub const NAME: &str = "builtin";

/// The measured libraries.
const LIBRARIES: [&str; 6] = ["hyper", "tonic", "rustls", "quinn", "h3", "tokio"];

/// The libraries do not report their versions, so this build's lock file provides them.
const LOCK: &str = include_str!("../../../Cargo.lock");

/// The output of `wirelab endpoint describe`.
#[must_use]
pub fn describe() -> Description {
    let role = || role(&Protocol::ALL);
    let client = Role { own_requests: true, until_steady: true, ..role() };
    Description { server: Some(role()), client: Some(client), ..without_roles(NAME, &LIBRARIES) }
}

/// A role with these protocols and every feature of the contract.
pub(crate) fn role(protocols: &[Protocol]) -> Role {
    Role {
        protocols: protocols.to_vec(),
        features: vec![
            Feature::Files,
            Feature::Pages,
            Feature::Echo,
            Feature::Bytes,
            Feature::Delay,
            Feature::Redirect,
            Feature::Heron,
        ],
        exposition: true,
        own_requests: false,
        until_steady: false,
    }
}

/// The description of an endpoint that measures these libraries, still without a role.
pub(crate) fn without_roles(name: &str, libraries: &[&str]) -> Description {
    let versions: Vec<_> = libraries.iter().map(|library| version(LOCK, library)).collect();
    Description {
        contract: CONTRACT_VERSION,
        name: name.to_owned(),
        library: libraries.join(", "),
        version: versions.join(", "),
        language: "Rust".to_owned(),
        server: None,
        client: None,
        sidecar: None,
        control_plane: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_versions_of_the_libraries_are_those_of_the_lock_file() {
        let version = describe().version;
        assert!(version.starts_with("hyper 1.") && !version.contains("unknown"), "{version}");
    }
}
