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

/// Where the cluster keeps all that it writes.
pub const FOLDER: &str = "/run/wirelab-cluster";

/// A cluster, which is removed when it is dropped, unless it was there before.
pub struct Cluster {
    was_there: bool,
}

impl Cluster {
    /// Brings it up with an image, which takes minutes where Kubernetes was not built before, or takes the one that is up. None where
    /// that cannot be; then the test is skipped.
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

    /// The same command once more.
    pub fn up_again(&self, nodes: &str, proxy: &str, image: &Path) -> Said {
        script(&["up", "--nodes", nodes, "--proxy", proxy, "--image", &image.to_string_lossy()])
    }

    /// What kubectl says, which has to succeed.
    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> String {
        script(&[&["kubectl"], args].concat()).with_status(0).out
    }

    /// Gives kubectl something to read; whether it succeeds is not asked.
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

    /// The objects of a kind that a selector chooses.
    #[track_caller]
    pub fn list(&self, kind: &str, selector: &str) -> Vec<Value> {
        let text = self.kubectl(&["get", kind, "--selector", selector, "--output", "json"]);
        let list: Value = serde_json::from_str(&text).unwrap();
        list["items"].as_array().unwrap().clone()
    }

    /// Creates what a manifest describes.
    #[track_caller]
    pub fn apply(&self, manifest: &str) {
        self.try_kubectl(&["apply", "--filename", "-"], manifest).with_status(0);
    }

    /// Ends a node, or `kube-apiserver`, as a crash does.
    #[track_caller]
    pub fn kill(&self, part: &str) {
        script(&["kill", part]).with_status(0);
    }

    /// Starts it again.
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

/// Waits, bounded, until `holds` in a cluster, which takes its time, the more so where its nodes share two processors.
#[track_caller]
pub fn eventually(what: &str, holds: impl FnMut() -> bool) {
    eventually_within(Duration::from_secs(180), what, holds);
}

/// Runs `tests/cluster/cluster.sh` to its end.
pub fn script(args: &[&str]) -> Said {
    said(command(args).output().unwrap())
}

/// `tests/cluster/cluster.sh` with nothing on its standard input.
pub fn command(args: &[&str]) -> Command {
    let mut command = Command::new(root().join("tests/cluster/cluster.sh"));
    command.args(args).stdin(Stdio::null());
    command
}

/// The image of wirelab that `make image` made.
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
