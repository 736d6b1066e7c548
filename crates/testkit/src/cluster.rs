//! The test cluster of `tests/cluster`, as a test uses it.

use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

pub use crate::root;
use crate::{Said, Skip, eventually_within, said, skip};

/// The folder with all files of the cluster.
pub const FOLDER: &str = "/run/wirelab-cluster";

/// A cluster. It is removed when dropped, unless it was running before.
pub struct Cluster {
    was_there: bool,
}

impl Cluster {
    /// Starts a cluster with an image, or uses the running one. Takes minutes if Kubernetes is not built yet. `None` if
    /// the machine cannot run a cluster; the test is then skipped.
    #[track_caller]
    pub fn up(nodes: &str, proxy: &str, image: &Path) -> Option<Self> {
        let check = script(&["check"]);
        if check.status != 0 {
            skip(Skip::NoCluster { why: check.err });
            return None;
        }
        let cluster = Self { was_there: Path::new(FOLDER).exists() };
        cluster.up_again(nodes, proxy, image).with_status(0);
        Some(cluster)
    }

    /// Repeats the start of the running cluster.
    pub fn up_again(&self, nodes: &str, proxy: &str, image: &Path) -> Said {
        script(&["up", "--nodes", nodes, "--proxy", proxy, "--image", &image.to_string_lossy()])
    }

    /// Runs kubectl, which must succeed.
    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> String {
        script(&[&["kubectl"], args].concat()).with_status(0).out
    }

    /// Runs kubectl with `input`; it may fail.
    pub fn try_kubectl(&self, args: &[&str], input: &str) -> Said {
        let mut child = command(&[&["kubectl"], args].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        said(child.wait_with_output().unwrap())
    }

    /// The objects of a kind that a selector matches.
    #[track_caller]
    pub fn list(&self, kind: &str, selector: &str) -> Vec<Value> {
        let text = self.kubectl(&["get", kind, "--selector", selector, "--output", "json"]);
        let list: Value = serde_json::from_str(&text).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Creates the objects of a manifest.
    #[track_caller]
    pub fn apply(&self, manifest: &str) {
        self.try_kubectl(&["apply", "--filename", "-"], manifest).with_status(0);
    }

    /// Kills a node, or `kube-apiserver`, as a crash does.
    #[track_caller]
    pub fn kill(&self, part: &str) {
        script(&["kill", part]).with_status(0);
    }

    /// Starts a killed node, or `kube-apiserver`, again.
    #[track_caller]
    pub fn start(&self, part: &str) {
        script(&["start", part]).with_status(0);
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if self.was_there {
            return;
        }
        let down = script(&["down"]);
        if !std::thread::panicking() {
            down.with_status(0);
        }
    }
}

/// Waits until `holds`, as long as a cluster may need whose nodes share two processors.
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(Duration::from_secs(180), what, holds);
}

/// Runs `tests/cluster/cluster.sh` to its end.
pub fn script(args: &[&str]) -> Said {
    said(command(args).output().unwrap())
}

/// `tests/cluster/cluster.sh` with an empty standard input.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(root().join("tests/cluster/cluster.sh"));
    command.args(args).stdin(Stdio::null());
    command
}

/// The image of wirelab that `make image` built.
pub fn image() -> PathBuf {
    let path = env::var_os("WIRELAB_IMAGE").map_or_else(|| root().join("target/image/wirelab.tar"), PathBuf::from);
    assert!(path.exists(), "there is no image {}: make image", path.display());
    path
}

/// The processes of the cluster whose command lines contain `word`.
pub fn processes(word: &str) -> Vec<u32> {
    let is_ours = |process: &u32| {
        let cgroups = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap_or_default();
        cgroups.contains("/wirelab-cluster/")
    };
    crate::processes(word).into_iter().filter(is_ours).collect()
}
