//! The folder below which the agent keeps the files of a run. In a pod it is `/`, so that paths are the same on both
//! sides; on a host that belongs to others, it is a folder of the run.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use wirelab_model::relocate::{Relocate, below};
use wirelab_model::spec::{ClientSpec, ControlPlaneSpec, ServerSpec, SidecarSpec};

/// Environment variable with the folder. It also marks the processes of one seat on a host, which `sweep` ends.
pub const ROOT: &str = "WIRELAB_AGENT_ROOT";

/// The folder.
pub(super) fn root() -> PathBuf {
    env::var_os(ROOT).map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

/// The spec of an endpoint here: as it was sent, or a copy with the paths of this host.
pub(super) fn spec(role: &str, sent: &str) -> io::Result<PathBuf> {
    let root = root();
    if root == Path::new("/") {
        return Ok(PathBuf::from(sent));
    }
    let here = place(&root, sent);
    let text = fs::read(below(&root, Path::new(sent)))?;
    let text = match role {
        "server" => relocated::<ServerSpec>(&text, &root),
        "client" => relocated::<ClientSpec>(&text, &root),
        "sidecar" => relocated::<SidecarSpec>(&text, &root),
        _ => relocated::<ControlPlaneSpec>(&text, &root),
    }?;
    fs::write(&here, text)?;
    Ok(here)
}

/// The path of an endpoint's spec, as its command line has it.
pub(super) fn spec_path(sent: &str) -> PathBuf {
    let root = root();
    if root == Path::new("/") { PathBuf::from(sent) } else { place(&root, sent) }
}

fn place(root: &Path, sent: &str) -> PathBuf {
    below(root, Path::new(&format!("{sent}.here")))
}

fn relocated<S: Relocate + Serialize + DeserializeOwned>(text: &[u8], root: &Path) -> io::Result<Vec<u8>> {
    let mut spec: S = serde_json::from_slice(text)?;
    spec.relocate(root);
    Ok(serde_json::to_vec(&spec)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relocated_spec_has_the_paths_of_this_host() {
        let sidecar = r#"{ "contract": 1, "protocol": "h2c", "upstream_protocol": "h2c", "address": "127.0.0.1", "port": 0, "upstreams": "/run/u" }"#;
        let text = relocated::<SidecarSpec>(sidecar.as_bytes(), Path::new("/tmp/wirelab-a/server")).unwrap();
        assert!(String::from_utf8(text).unwrap().contains(r#""/tmp/wirelab-a/server/run/u""#));
        assert_eq!(place(Path::new("/tmp/x"), "/run/s.json"), Path::new("/tmp/x/run/s.json.here"));
    }
}
