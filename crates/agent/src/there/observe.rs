//! Runs observers on the endpoints of a pod, inside the pod or on its node, where the kernel shows their processes. The
//! observers are the same as for processes of this machine.

use std::fs;
use std::io::{self, BufRead};
use std::path::Path;

use wirelab_lab::{Beside, Role};
use wirelab_model::metric::{Side, Values};
use wirelab_model::missing::Missing;
use wirelab_model::network::{Between, Place, Vantage};
use wirelab_observe::packets::ABOUT as PACKETS;
use wirelab_observe::{Observer, Sidecars, Stage, Targets, Window, Witness, create, places};

use super::{Peers, SUBCOMMAND, root, say};

/// All roles; sidecars once for each side.
const ROLES: [Role; 5] =
    [Role::Server, Role::Client, Role::Sidecar(Beside::Server), Role::Sidecar(Beside::Clients), Role::ControlPlane];

/// The interface flag "up" (netdevice(7)).
const UP: u32 = 1;

/// The argument of a server without peers on other nodes.
pub const NO_PEERS: &str = "-";

/// The node's first process, which is in the node's network namespace. Only processes with the node's PID namespace see
/// it.
const NODE: &str = "/proc/1";

/// The argument that names a role.
pub(crate) const fn part(role: Role) -> &'static str {
    match role {
        Role::Sidecar(Beside::Server) => "sidecar-of-server",
        Role::Sidecar(Beside::Clients) => "sidecar-of-clients",
        role => role.word(),
    }
}

/// Observes the endpoints of this pod.
pub(crate) fn in_pod(names: &str, played: &[&str]) -> io::Result<()> {
    let targets = targets(None, played)?;
    let mut observers = observers(names)?;
    obey(&targets, &mut observers, &Values::new())
}

/// Observes, on the node, the endpoints of the pod with this UID.
pub(crate) fn on_node(pod: &str, peers: &str, names: &str, played: &[&str]) -> io::Result<()> {
    let targets = targets(Some(pod), played)?;
    let mut observers = observers(names)?;
    let mut unseen = Values::new();
    if names.split(',').any(|name| name == PACKETS.name) {
        let mut vantages = of_client(&targets)?;
        if peers != NO_PEERS {
            match of_server(&targets, &peers.parse()?) {
                Ok(more) => vantages.extend(more),
                // The other observers' values stay valid.
                Err(error) => {
                    let why = Missing::failed("finding the interfaces of the server's node", error);
                    unseen = places::all_missing(Side::Server, &[PACKETS.name.to_owned()], &why);
                }
            }
        }
        let witness = Witness::default();
        let stage = Stage { vantages: &vantages, witness: &witness, captures: None, films: None };
        observers.iter_mut().for_each(|observer| observer.prepare(&stage));
    }
    obey(&targets, &mut observers, &unseen)
}

fn observers(names: &str) -> io::Result<Vec<Box<dyn Observer>>> {
    let unknown =
        |name: &str| io::Error::other(format!("there is no observer `{name}`; is its wirelab of another version?"));
    names.split(',').map(|name| create(name).ok_or_else(|| unknown(name))).collect()
}

/// Executes the lines on standard input and answers each with one line. `begin` and `end` of the window give an empty
/// line. `values NS REQUESTS BYTES` gives the values as JSON, with those in `known` added.
fn obey(targets: &Targets, observers: &mut [Box<dyn Observer>], known: &Values) -> io::Result<()> {
    say("")?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        let words: Vec<_> = line.split(' ').collect();
        match words[..] {
            ["begin"] => {
                observers.iter_mut().for_each(|observer| observer.begin(targets));
                say("")?;
            }
            ["end"] => {
                observers.iter_mut().rev().for_each(|observer| observer.end(targets));
                say("")?;
            }
            ["values", ns, requests, bytes] => {
                let number = |word: &str| word.parse().map_err(|_| io::Error::other(format!("`{word}` is no number")));
                let window = Window { ns: number(ns)?, requests: number(requests)?, bytes: number(bytes)? };
                let mut values: Values = observers.iter_mut().flat_map(|observer| observer.values(&window)).collect();
                values.extend(known.clone());
                say(&serde_json::to_string(&values)?)?;
            }
            _ => return Err(io::Error::other(format!("the word `{line}` is not known"))),
        }
    }
    Ok(())
}

/// The processes of the endpoints, given as pairs of role and spec. All other roles are known to have no process here.
fn targets(pod: Option<&str>, played: &[&str]) -> io::Result<Targets> {
    let (mut servers, mut clients) = (Vec::new(), Vec::new());
    let (mut of_servers, mut of_clients) = (Vec::new(), Vec::new());
    let mut control_plane = None;
    for pair in played.chunks(2) {
        let role = ROLES.into_iter().find(|role| part(*role) == pair[0]);
        let (Some(role), Some(spec)) = (role, pair.get(1)) else {
            return Err(io::Error::other(format!(
                "there is no part `{}`; is its wirelab of another version?",
                pair[0]
            )));
        };
        let process = process(pod, role.word(), &root::spec_path(spec).to_string_lossy())?;
        match role {
            Role::Server => servers.push(process),
            Role::Client => clients.push(process),
            Role::Sidecar(Beside::Server) => of_servers.push(process),
            Role::Sidecar(Beside::Clients) => of_clients.push(process),
            Role::ControlPlane => control_plane = Some(process),
        }
    }
    let has_sidecars = !of_servers.is_empty() || !of_clients.is_empty();
    let sidecars = Sidecars { of_servers: Some(of_servers), of_clients: Some(of_clients) };
    let sidecars = has_sidecars.then_some(sidecars);
    Ok(Targets { servers: Some(servers), clients: Some(clients), sidecars, control_plane, ..Targets::default() })
}

/// The process of the endpoint with this role and spec. It runs: observers start after `ready`.
fn process(pod: Option<&str>, role: &str, spec: &str) -> io::Result<u32> {
    let all = fs::read_dir("/proc")?.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // A process that ends meanwhile has no command line.
    let plays = |pid: &u32| fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| is_it(&line, role, spec));
    let is_here = |pid: &u32| {
        let cgroups = || fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        pod.is_none_or(|pod| is_of(&cgroups(), pod))
    };
    let playing: Vec<u32> = all.filter(|pid| plays(pid) && is_here(pid)).collect();
    // A child may have the arguments of its parent; the parent is the endpoint.
    let first = playing.iter().find(|pid| parent(**pid).is_none_or(|parent| !playing.contains(&parent)));
    first.copied().ok_or_else(|| io::Error::other(format!("no process here plays the {role} of {spec}")))
}

fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find_map(|line| line.strip_prefix("PPid:"))?.trim().parse().ok()
}

/// Whether these are cgroups of the pod with this UID. Their names contain the UID; systemd replaces its hyphens.
fn is_of(cgroups: &str, pod: &str) -> bool {
    cgroups.contains(pod) || cgroups.contains(&pod.replace('-', "_"))
}

/// The interface of the client's pod, if the client is in this pod.
fn of_client(targets: &Targets) -> io::Result<Vec<Vantage>> {
    let client = targets.clients.iter().flatten().next();
    client.map(|client| of_pod(Place::Client, *client, None)).into_iter().collect()
}

/// The interface of the server's pod, and the node's interface towards the clients' nodes, which other pods share.
fn of_server(targets: &Targets, peers: &Peers) -> io::Result<Vec<Vantage>> {
    let Some(server) = targets.servers.iter().flatten().next() else { return Ok(Vec::new()) };
    let between = peers.between();
    let pod = of_pod(Place::ServerPod, *server, Some(between.clone()))?;
    let node = Path::new(NODE);
    let interface = peers.interface(&fs::read_to_string(node.join("net/route"))?)?.to_owned();
    let mtu = mtu(&node.join(INTERFACES), &interface)?;
    let (place, namespace) = (Place::ServerNode, node.join("ns/net"));
    let between = Some(between);
    Ok(vec![pod, Vantage { place, namespace, owner: None, interface, mtu, is_encapsulated: true, between }])
}

/// The folder of a process's network interfaces, below its folder in `/proc`.
const INTERFACES: &str = "root/sys/class/net";

/// The interface of a process's pod.
fn of_pod(place: Place, process: u32, between: Option<Between>) -> io::Result<Vantage> {
    // The process's root and network namespace: proc_pid_root(5), proc_pid_ns(5).
    let process = Path::new("/proc").join(process.to_string());
    let (interface, mtu) = interface(&process.join(INTERFACES))?;
    let namespace = process.join("ns/net");
    Ok(Vantage { place, namespace, owner: None, interface, mtu, is_encapsulated: false, between })
}

/// The only interface besides loopback that is up, and its MTU, from the folder of interfaces.
fn interface(folder: &Path) -> io::Result<(String, u32)> {
    let is_up = |name: &str| {
        let flags = fs::read_to_string(folder.join(name).join("flags")).unwrap_or_default();
        u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).is_ok_and(|flags| flags & UP != 0)
    };
    let names = fs::read_dir(folder)?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let mut names = names.filter(|name| name != "lo" && is_up(name));
    let (Some(name), None) = (names.next(), names.next()) else {
        return Err(io::Error::other("the pod has no interface, or several, which belong to its traffic in part"));
    };
    let mtu = mtu(folder, &name)?;
    Ok((name, mtu))
}

fn mtu(folder: &Path, interface: &str) -> io::Result<u32> {
    let text = fs::read_to_string(folder.join(interface).join("mtu")).unwrap_or_default();
    text.trim().parse().map_err(|_| io::Error::other(format!("the interface {interface} has no MTU")))
}

/// Whether a command line is the endpoint's, with any program and interpreter, and not that of the agent that started
/// it.
fn is_it(command: &[u8], role: &str, spec: &str) -> bool {
    let command = command.strip_suffix(b"\0").unwrap_or(command);
    let words: Vec<_> = command.split(|byte| *byte == 0).collect();
    let is_agent = words.get(1).is_some_and(|word| *word == SUBCOMMAND.as_bytes());
    !is_agent && words.ends_with(&[role.as_bytes(), b"--spec", spec.as_bytes()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_known_by_its_role_and_its_spec_and_its_agent_is_not_it() {
        let is = |command: &[u8]| is_it(command, "client", "/run/client.json");
        assert!(is(b"/wirelab\0endpoint\0client\0--spec\0/run/client.json\0"));
        assert!(!is(b"/wirelab\0endpoint\0client\0--spec\0/run/client1.json\0"));
        assert!(!is(b"/wirelab\0endpoint\0server\0--spec\0/run/client.json\0"));
        assert!(!is(b"/wirelab\0agent\0start\0builtin\0none\0client\0--spec\0/run/client.json\0"));
        assert!(is(b"python3\0-B\0endpoint.py\0--program\0/cache/a\0client\0--spec\0/run/client.json\0"));
        assert!(!is(b""));
    }

    #[test]
    fn unnamed_parts_have_no_processes_and_unknown_parts_are_refused() {
        let nobody = targets(None, &[]).unwrap();
        assert_eq!((nobody.servers, nobody.clients, nobody.sidecars), (Some(Vec::new()), Some(Vec::new()), None));
        assert!(targets(None, &["proxy", "/run/a.json"]).unwrap_err().to_string().contains("no part `proxy`"));
        assert!(targets(None, &["client"]).is_err());
        let absent = targets(None, &["sidecar-of-clients", "/nowhere.json"]).unwrap_err().to_string();
        assert!(absent.contains("plays the sidecar of /nowhere.json"), "{absent}");
    }

    #[test]
    fn on_a_node_a_process_is_known_by_the_uid_of_its_pod_in_either_spelling() {
        let pod = "0f8fad5b-d9cb-469f-a165-70867728950e";
        assert!(is_of("0::/kubepods/burstable/pod0f8fad5b-d9cb-469f-a165-70867728950e/abc\n", pod));
        assert!(is_of(
            "0::/kubepods.slice/kubepods-pod0f8fad5b_d9cb_469f_a165_70867728950e.slice/cri-abc.scope\n",
            pod
        ));
        assert!(!is_of("0::/system.slice/ssh.service\n", pod));
    }

    #[test]
    fn the_interface_of_a_pod_is_the_one_that_is_up() {
        let folder = tempfile::tempdir().unwrap();
        let add = |name: &str, flags: &str| {
            fs::create_dir(folder.path().join(name)).unwrap();
            fs::write(folder.path().join(name).join("flags"), flags).unwrap();
            fs::write(folder.path().join(name).join("mtu"), "1450\n").unwrap();
        };
        add("lo", "0x9\n");
        add("tunl0", "0x80\n");
        assert!(interface(folder.path()).unwrap_err().to_string().contains("no interface, or several"));
        add("eth0", "0x1003\n");
        assert_eq!(interface(folder.path()).unwrap(), ("eth0".to_owned(), 1450));
        assert!(mtu(folder.path(), "eth7").unwrap_err().to_string().contains("eth7 has no MTU"));
        add("eth1", "0x1003\n");
        assert!(interface(folder.path()).is_err());
    }
}
