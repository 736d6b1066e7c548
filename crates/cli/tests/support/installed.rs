//! Studies whose endpoints have to be installed first.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use super::support::{said, wirelab};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Installs an endpoint in the user's cache, as those of the core set are. By one test at a time, for wirelab waits for no other
/// installation.
pub fn install(endpoint: &str) {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        let mut install = wirelab(&root(), &["endpoints", "install", endpoint]);
        said(install.env("WIRELAB_ENDPOINTS", "").output().unwrap()).with_status(0);
    });
}

/// The run of the study in a folder, with all endpoints that are installed.
pub fn run(folder: &Path) -> Command {
    let mut command = wirelab(folder, &["run", "study.toml", "--quiet"]);
    command.env("WIRELAB_ENDPOINTS", root().join("endpoints"));
    command
}
