//! What the built-in endpoint says of itself.

use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{Description, Role};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

/// The name of the built-in endpoint.
pub const NAME: &str = "builtin";

/// What `wirelab endpoint describe` prints.
#[must_use]
pub fn describe() -> Description {
    let role = || Role {
        protocols: Protocol::ALL.to_vec(),
        features: vec![Feature::Files, Feature::Echo, Feature::Bytes, Feature::Delay],
    };
    Description {
        contract: CONTRACT_VERSION,
        name: NAME.to_owned(),
        library: "hyper, rustls, quinn, h3 on tokio".to_owned(),
        // The libraries do not report their versions; those of this build are in the lock file.
        version: env!("CARGO_PKG_VERSION").to_owned(),
        language: "Rust".to_owned(),
        server: Some(role()),
        client: Some(role()),
    }
}
