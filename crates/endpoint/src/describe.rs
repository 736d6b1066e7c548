//! The description of the built-in endpoint.

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
    let role = || Role {
        protocols: Protocol::ALL.to_vec(),
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
    };
    Description {
        contract: CONTRACT_VERSION,
        name: NAME.to_owned(),
        library: LIBRARIES.join(", "),
        version: LIBRARIES.map(|library| version(LOCK, library)).join(", "),
        language: "Rust".to_owned(),
        server: Some(role()),
        client: Some(Role { own_requests: true, ..role() }),
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
