//! Hosts that `ssh` reaches: for each a real sshd in namespaces with its own network, processes, mounts and name. They
//! share no folder for temporary files with this machine, and are joined by a bridge that only the test is in.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::thread::{UnshareFlags, unshare_unsafe};
use tempfile::TempDir;

use crate::{Skip, eventually, skip};

/// The first process of a host. Its arguments are the name, the address, and the folder of the configuration.
const HOST: &str = r#"
set -e
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir /run/sshd
cp "$2"/host_key "$2"/authorized_keys "$2"/sshd_config /run/sshd/
mount -t tmpfs tmpfs /tmp
hostname "$0"
ip link set lo up
echo ready
read joined
ip address add "$1/24" dev eth0
ip link set eth0 up
exec /usr/sbin/sshd -D -e -f /run/sshd/sshd_config"#;

const SSHD: &str = "HostKey /run/sshd/host_key
AuthorizedKeysFile /run/sshd/authorized_keys
PermitRootLogin prohibit-password
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
MaxSessions 100
PidFile none
";

/// Running hosts. Drop ends them.
pub struct SshHosts {
    folder: TempDir,
    hosts: Vec<Host>,
}

struct Host {
    name: String,
    address: String,
    process: Option<Child>,
}

impl SshHosts {
    /// Moves this thread into a network of its own, and starts hosts of these names in it. Records a skip and returns
    /// `None` if this machine cannot.
    #[track_caller]
    pub fn start(names: &[&str]) -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").exists() {
            let remedy = "tests/setup.sh installs it".to_owned();
            skip(Skip::MissingProgram { program: "sshd".to_owned(), remedy });
            return None;
        }
        // SAFETY: only the network namespace of this thread changes; no memory and no file descriptor is unshared.
        if let Err(error) = unsafe { unshare_unsafe(UnshareFlags::NEWNET) } {
            skip(Skip::NoNetworkNamespaces { why: error.to_string() });
            return None;
        }
        for args in
            ["link set lo up", "link add br0 type bridge", "address add 10.77.0.254/24 dev br0", "link set br0 up"]
        {
            ip(args);
        }
        // Not in the folder for temporary files, which hosts do not share.
        let beside = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        let folder = tempfile::Builder::new().prefix("ssh-").tempdir_in(beside).unwrap();
        let mut hosts = Self { folder, hosts: Vec::new() };
        hosts.write_configuration(names);
        for (number, name) in (1..).zip(names) {
            let address = format!("10.77.0.{number}");
            hosts.hosts.push(Host { name: (*name).to_owned(), address, process: None });
        }
        for number in 0..names.len() {
            hosts.boot(number);
        }
        Some(hosts)
    }

    fn write_configuration(&self, names: &[&str]) {
        let folder = self.folder.path();
        for key in ["host_key", "key"] {
            let made =
                Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(folder.join(key)).status();
            assert!(made.unwrap().success());
        }
        fs::rename(folder.join("key.pub"), folder.join("authorized_keys")).unwrap();
        fs::write(folder.join("sshd_config"), SSHD).unwrap();
        let host_key = fs::read_to_string(folder.join("host_key.pub")).unwrap();
        let known: String = (1..=names.len()).map(|number| format!("10.77.0.{number} {host_key}")).collect();
        fs::write(self.known_hosts(), known).unwrap();
        let place = folder.display();
        let mut config = format!(
            "Host *\n  User root\n  IdentityFile {place}/key\n  IdentitiesOnly yes\n  StrictHostKeyChecking yes\n  UserKnownHostsFile {}\n",
            self.known_hosts().display()
        );
        for (number, name) in (1..).zip(names) {
            config += &format!("Host {name}\n  HostName 10.77.0.{number}\n");
        }
        fs::write(folder.join("config"), config).unwrap();
        let bin = folder.join("bin");
        fs::create_dir(&bin).unwrap();
        fs::write(bin.join("ssh"), format!("#!/bin/sh\nexec /usr/bin/ssh -F {place}/config \"$@\"\n")).unwrap();
        fs::set_permissions(bin.join("ssh"), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The file with the known keys of hosts.
    pub fn known_hosts(&self) -> PathBuf {
        self.folder.path().join("known_hosts")
    }

    /// The key with which the user logs in.
    pub fn key(&self) -> PathBuf {
        self.folder.path().join("key")
    }

    /// A search path whose `ssh` knows the hosts by their names.
    pub fn path(&self) -> String {
        format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap())
    }

    /// Starts a host, and waits until sshd answers.
    pub fn boot(&mut self, number: usize) {
        let Host { name, address, process } = &mut self.hosts[number];
        let unshared = ["--net", "--mount", "--pid", "--uts", "--ipc", "--fork", "--kill-child"];
        let mut command = Command::new("unshare");
        command.args(unshared).args(["sh", "-c", HOST, name, address]).arg(self.folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        assert_eq!(ready, "ready\n", "the host {name} did not start");
        // The interface of a host that ended goes with its namespace, some time later.
        let remains =
            || Command::new("ip").args(["link", "show", &format!("v{number}")]).output().unwrap().status.success();
        eventually("the end of the host's interface", || !remains());
        // After a restart it has the same hardware address.
        let (mac, target) = (format!("02:00:0a:4d:00:{number:02x}"), first_process(&child));
        ip(&format!("link add v{number} type veth peer name eth0 address {mac} netns {target}"));
        ip(&format!("link set v{number} master br0 up"));
        child.stdin.take().unwrap().write_all(b"joined\n").unwrap();
        *process = Some(child);
        let address: std::net::SocketAddr = format!("{address}:22").parse().unwrap();
        let name = name.clone();
        eventually(&format!("sshd of {name} answers"), || std::net::TcpStream::connect(address).is_ok());
    }

    /// Ends a host with all its processes, as a lost power supply does.
    pub fn switch_off(&mut self, number: usize) {
        if let Some(mut process) = self.hosts[number].process.take() {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }

    /// Changes the network of a host by these commands, which run there one after the other.
    pub fn shape(&self, number: usize, commands: &[&str]) {
        let process = self.hosts[number].process.as_ref().expect("the host is on");
        let target = first_process(process).to_string();
        for command in commands {
            let words: Vec<_> = command.split(' ').collect();
            let output = Command::new("nsenter").args(["-t", &target, "-n"]).args(&words).output().unwrap();
            assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        }
    }

    /// Cuts the host's network, or joins it again.
    pub fn set_link(&self, number: usize, is_up: bool) {
        ip(&format!("link set v{number} {}", if is_up { "up" } else { "down" }));
    }

    /// The traces of wirelab on a host: temporary files and processes.
    pub fn remains(&self, number: usize) -> Vec<String> {
        let process = self.hosts[number].process.as_ref().expect("the host is on");
        let script = "ls -d /tmp/* 2>/dev/null; for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done | grep -v grep | grep wirelab";
        let target = first_process(process).to_string();
        let output = Command::new("nsenter").args(["-t", &target, "-m", "-p", "sh", "-c", script]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(str::to_owned).filter(|line| !line.contains("nsenter")).collect()
    }
}

impl Drop for SshHosts {
    fn drop(&mut self) {
        (0..self.hosts.len()).for_each(|number| self.switch_off(number));
    }
}

/// The host's first process: the child of `unshare`.
fn first_process(unshare: &Child) -> u32 {
    let path = format!("/proc/{0}/task/{0}/children", unshare.id());
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

fn ip(args: &str) {
    let output = Command::new("ip").args(args.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {args}: {}", String::from_utf8_lossy(&output.stderr));
}
