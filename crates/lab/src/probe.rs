//! The probe for unknown protocols: an endpoint must refuse a protocol that does not exist before its results are
//! valid.
//!
//! The idea comes from the QUIC interop runner: an endpoint that ignores unknown options would "pass" every test.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::{Duration, Instant};

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::Value;
use wirelab_model::CONTRACT_VERSION;
use wirelab_model::endpoint::{Endpoint, UNSUPPORTED_STATUS};
use wirelab_model::protocol::Protocol;
use wirelab_model::spec::{ClientSpec, ControlPlaneSpec, ServerSpec, SidecarSpec, Transport};

use crate::endpoints::{ended, output};
use crate::{ExitStatus, LabError, Role};

/// Time limit for the refusal, including the start of an interpreter.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum output of the endpoint, in bytes.
const LONGEST_REFUSAL: usize = 64 * 1024;

/// Starts the endpoint with a valid spec except for a protocol of random letters, and expects exit status 127.
///
/// `scratch` is a folder for the spec; `seed` chooses the letters.
///
/// # Errors
/// If the endpoint does anything else, or cannot be started.
pub fn refuses_unknown_protocol(endpoint: &Endpoint, role: Role, scratch: &Path, seed: u64) -> Result<(), LabError> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let unknown: String = (0..12).map(|_| char::from(random.random_range(b'a'..=b'z'))).collect();
    let word = role.word();
    let results = scratch.join("unknown-results.jsonl");
    let mut spec = match role {
        Role::Server => serde_json::to_value(ServerSpec::plain(Protocol::Tcp)),
        Role::Client => serde_json::to_value(client_spec(&results)),
        Role::Sidecar(_) => serde_json::to_value(sidecar_spec(scratch)),
        Role::ControlPlane => serde_json::to_value(control_plane_spec(scratch)),
    }
    .expect("a spec always serialises");
    spec["protocol"] = Value::from(unknown.clone());
    let path = scratch.join(format!("unknown-{word}.json"));
    let path = std::path::absolute(&path).unwrap_or(path);
    std::fs::write(&path, spec.to_string())
        .map_err(|error| LabError::endpoint(format!("cannot write the spec {}", path.display())).because(error))?;

    let deadline = Instant::now() + REFUSAL_TIMEOUT;
    let arguments = [OsStr::new(word), OsStr::new("--spec"), path.as_os_str()];
    let (_, exit) = output(endpoint, &arguments, LONGEST_REFUSAL, deadline)?;
    if exit.status == ExitStatus::Code(UNSUPPORTED_STATUS) {
        return Ok(());
    }
    Err(LabError::endpoint(format!("the endpoint `{}` as {word} does not refuse the unknown protocol `{unknown}`: it must exit with status {UNSUPPORTED_STATUS}, but {}. Its results would be invalid", endpoint.name, ended(&exit))).remedy("see contract/README.md"))
}

const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn sidecar_spec(scratch: &Path) -> SidecarSpec {
    SidecarSpec {
        contract: CONTRACT_VERSION,
        protocol: Protocol::H1c,
        upstream_protocol: Protocol::H1c,
        address: LOCALHOST,
        port: 0,
        // This file does not exist: the endpoint must refuse the protocol before it reads the file.
        upstreams: scratch.join("unknown-upstreams.json"),
        threads: None,
        transport: Transport::default(),
    }
}

fn control_plane_spec(scratch: &Path) -> ControlPlaneSpec {
    ControlPlaneSpec {
        contract: CONTRACT_VERSION,
        protocol: Protocol::Grpcc,
        address: LOCALHOST,
        port: 0,
        server_name: "localhost".to_owned(),
        members: scratch.join("unknown-members.json"),
    }
}

fn client_spec(results: &Path) -> ClientSpec {
    // The discard port: an endpoint that continues regardless finds no server.
    ClientSpec { results: results.to_owned(), ..ClientSpec::plain(Protocol::Tcp, 9) }
}
