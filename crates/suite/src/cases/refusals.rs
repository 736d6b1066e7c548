//! Cases of refusal: an endpoint must not ignore anything that it does not know.

use serde_json::{Value, json};
use wirelab_lab::Role;
use wirelab_model::endpoint::Role as Abilities;
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::Feature;

use crate::case::Case;
use crate::conversation::{Answer, Server, json as as_json, run_client};
use crate::finding::{Finding, Stop};
use crate::pair::Pair;
use crate::stage::Stage;

/// An invalid spec: location and value.
struct Refusal {
    name: &'static str,
    pointer: &'static str,
    value: fn() -> Value,
    of: &'static [Role],
}

const BOTH: &[Role] = &[Role::Server, Role::Client];
const CLIENT: &[Role] = &[Role::Client];

const REFUSALS: &[Refusal] = &[
    Refusal { name: "an unknown protocol", pointer: "/protocol", value: random_word, of: BOTH },
    Refusal { name: "another version of the contract", pointer: "/contract", value: || json!(4_000_000), of: BOTH },
    Refusal { name: "an unknown field", pointer: "/x-unknown-field", value: || json!(1), of: BOTH },
    Refusal {
        name: "an unknown transport setting",
        pointer: "/transport/x-unknown-field",
        value: || json!(true),
        of: BOTH,
    },
    Refusal { name: "an unknown congestion control", pointer: "/transport/congestion", value: random_word, of: BOTH },
    Refusal { name: "an unknown feature", pointer: "/features", value: || json!([random_word()]), of: &[Role::Server] },
    Refusal { name: "an unknown connection policy", pointer: "/connections/policy", value: random_word, of: CLIENT },
    Refusal { name: "an unknown schedule", pointer: "/schedule/loop", value: random_word, of: CLIENT },
    Refusal {
        name: "an unknown pause",
        pointer: "/schedule/pause",
        value: || json!({ "kind": random_word() }),
        of: CLIENT,
    },
    Refusal { name: "an unknown extent", pointer: "/extent", value: || json!({ "x-unknown": 1 }), of: CLIENT },
    Refusal { name: "an unknown resumption policy", pointer: "/resumption", value: random_word, of: CLIENT },
    Refusal { name: "an unknown recording", pointer: "/recording", value: random_word, of: CLIENT },
    Refusal {
        name: "an unknown field of the request",
        pointer: "/request/x-unknown-field",
        value: || json!(1),
        of: CLIENT,
    },
    Refusal {
        name: "an unknown field of the time-outs",
        pointer: "/timeouts/x-unknown-field",
        value: || json!(1),
        of: CLIENT,
    },
];

/// A random word, so that no endpoint can list it as an exception.
pub fn random_word() -> Value {
    let mut bytes = [0; 6];
    ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut bytes).expect("the system has randomness");
    let word: String = bytes.iter().map(|byte| char::from(b'a' + byte % 26)).collect();
    json!(format!("x{word}"))
}

/// The cases of a role, tried with its first protocol.
pub fn cases(role: Role, abilities: &Abilities) -> Vec<Case> {
    let Some(&protocol) = abilities.protocols.first() else { return Vec::new() };
    let feature = abilities.features.iter().copied().find(|feature| crate::pair::applies(*feature, protocol));
    let refused = REFUSALS.iter().filter(|refusal| refusal.of.contains(&role)).map(|refusal| {
        Case::new(role, protocol, format!("{} is unsupported (127)", refusal.name), move |stage| {
            let feature = feature.ok_or_else(|| Stop::skip("it declares no feature"))?;
            let pair = Pair::new(stage, role, protocol, feature, 1_000);
            let mut spec = if role == Role::Server { as_json(&pair.server) } else { as_json(&pair.client) };
            set(&mut spec, refusal.pointer, (refusal.value)());
            demand_refusal(stage, role, &spec, refusal.name)
        })
    });
    let undeclared = Protocol::ALL.into_iter().filter(|other| !abilities.protocols.contains(other)).map(|other| {
        Case::new(role, other, "a protocol that it does not declare is unsupported (127)", move |stage| {
            let feature = match other {
                _ if other.is_grpc() => Feature::Heron,
                _ if other.is_http() => feature.unwrap_or(Feature::Files),
                _ => Feature::Echo,
            };
            let pair = Pair::new(stage, role, other, feature, 1_000);
            let spec = if role == Role::Server { as_json(&pair.server) } else { as_json(&pair.client) };
            demand_refusal(stage, role, &spec, "a protocol that it does not declare")
        })
    });
    refused.chain(undeclared).collect()
}

/// Sets a value and creates missing objects on its path.
pub fn set(spec: &mut Value, pointer: &str, value: Value) {
    let mut place = spec;
    for key in pointer.split('/').skip(1) {
        place = &mut place[key];
    }
    *place = value;
}

/// Demands `unsupported` and 127 in answer to a spec.
pub fn demand_refusal(stage: &Stage, role: Role, spec: &Value, what: &str) -> Finding {
    let refused = |words: String| Stop::broken(format!("expected `unsupported` and status 127 for {what}; {words}"));
    let words = match role {
        Role::Client => match run_client(stage, &stage.subject, spec, || {})? {
            Answer::Unsupported(_) => return Ok(()),
            other => other.describe(),
        },
        Role::Server | Role::Sidecar(_) | Role::ControlPlane => {
            match Server::start_as(stage, &stage.subject, role, spec)? {
                Answer::Unsupported(_) => return Ok(()),
                other => other.describe(),
            }
        }
    };
    Err(refused(words))
}
