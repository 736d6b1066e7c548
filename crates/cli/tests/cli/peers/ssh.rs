//! Each `[[ssh]]` of `tests/peers/ssh.toml` is a program in the place of `ssh`, which the lab `hosts` starts.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::thread;

use serde::Deserialize;
use tempfile::tempdir;
use wirelab_testkit::said;

use super::limited;
use super::script::parsed;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    ssh: Vec<Peer>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Peer {
    name: String,
    /// Commands of sh.
    does: String,
    says: Vec<String>,
    #[serde(default)]
    never: Vec<String>,
}

#[test]
fn the_lab_hosts_names_the_fault_of_ssh_and_of_what_is_behind_it() {
    let File { ssh: peers } = parsed("ssh.toml");
    // All at once, because most of them wait.
    let wrong: Vec<_> = thread::scope(|scope| {
        let meetings: Vec<_> = peers.iter().map(|peer| scope.spawn(|| fault(peer))).collect();
        meetings.into_iter().filter_map(|meeting| meeting.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "{} of {} peers:\n{}", wrong.len(), peers.len(), wrong.join("\n"));
}

/// The deviation from the script.
fn fault(peer: &Peer) -> Option<String> {
    let folder = tempdir().unwrap();
    let bin = folder.path().join("bin");
    fs::create_dir(&bin).unwrap();
    // The configuration is asked first, and at the end the shared connection.
    let script = format!(
        "#!/bin/sh\ncase \"$*\" in -G*) echo hostname 192.0.2.1; exit;; *' -O '*) exit 255;; esac\n{}\n",
        peer.does
    );
    fs::write(bin.join("ssh"), script).unwrap();
    fs::set_permissions(bin.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = limited(folder.path());
    command.args(["run", "quick", "--lab", "hosts", "--hosts", "client=a.example,server=b.example", "--quiet"]);
    command.env("PATH", format!("{}:{}", bin.display(), std::env::var("PATH").unwrap()));
    let said = said(command.output().unwrap());
    let missing = peer.says.iter().filter(|words| !said.err.contains(words.as_str()));
    let unwanted = peer.never.iter().filter(|words| said.err.contains(words.as_str()));
    let wrong: Vec<_> = missing.chain(unwanted).collect();
    let is_right = wrong.is_empty() && matches!(said.status, 1 | 2);
    (!is_right).then(|| format!("{}: status {}, {wrong:?} in: {}", peer.name, said.status, said.err))
}
