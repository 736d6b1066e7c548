//! Sockets that wait for clients, from the tables of the kernel: proc_net(5).

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

use rustix::process::{getpgrp, getpid};

/// A kind of socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrier {
    Tcp,
    Udp,
}

impl fmt::Display for Carrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
        })
    }
}

/// A socket that listens (TCP), or is not connected (UDP).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub at: SocketAddr,
    inode: u64,
}

impl Waiting {
    #[cfg(test)]
    pub const fn of_test(at: SocketAddr) -> Self {
        Self { at, inode: 0 }
    }

    /// Whether clients of an address reach it, whatever its port.
    pub fn is_reached_at(&self, address: IpAddr) -> bool {
        let own = self.at.ip().to_canonical();
        own.is_unspecified() || own == address
    }
}

/// All such sockets of this network namespace.
pub(super) fn all(carrier: Carrier) -> Vec<Waiting> {
    let (tables, state) = match carrier {
        Carrier::Tcp => (["tcp", "tcp6"], "0A"),
        Carrier::Udp => (["udp", "udp6"], "07"),
    };
    let text = tables.map(|table| fs::read_to_string(format!("/proc/self/net/{table}")).unwrap_or_default());
    text.iter().flat_map(|text| text.lines().skip(1)).filter_map(|line| waiting(line, state)).collect()
}

/// A line of a table, if its socket is in this state.
fn waiting(line: &str, state: &str) -> Option<Waiting> {
    let mut columns = line.split_whitespace().skip(1);
    let at = place(columns.next()?)?;
    // After the remote address, and then five columns before the inode.
    if columns.nth(1)? != state {
        return None;
    }
    Some(Waiting { at, inode: columns.nth(5)?.parse().ok()? })
}

/// An address and port in hexadecimal. The address is one or four words in the byte order of the machine.
fn place(text: &str) -> Option<SocketAddr> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word = |from: usize| -> Option<[u8; 4]> {
        Some(u32::from_str_radix(address.get(from..from + 8)?, 16).ok()?.to_ne_bytes())
    };
    let ip = match address.len() {
        8 => IpAddr::V4(Ipv4Addr::from(word(0)?)),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(words.concat()).ok()?))
        }
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

/// Whether a socket of this network namespace listens at a path. The kernel knows the path that the program bound.
pub(super) fn is_listening_at(path: &Path) -> bool {
    /// The flag `__SO_ACCEPTCON` of the kernel.
    const LISTENING: u32 = 0x1_0000;
    let text = fs::read_to_string("/proc/self/net/unix").unwrap_or_default();
    text.lines().skip(1).any(|line| {
        // Number, references, protocol, flags, type, state, inode, path.
        let mut columns = line.split_whitespace();
        let flags = columns.nth(3).and_then(|flags| u32::from_str_radix(flags, 16).ok()).unwrap_or_default();
        let bound = columns.nth(3);
        flags & LISTENING != 0 && bound.map(Path::new) == Some(path)
    })
}

/// Those of these sockets that belong to other processes of this process group, as far as this user may see.
pub(super) fn of_group(sockets: Vec<Waiting>) -> Vec<Waiting> {
    let (own, group) = (getpid().as_raw_nonzero().get(), getpgrp().as_raw_nonzero().get());
    let others = processes().filter(|process| process.group == group && process.pid != own);
    let inodes: HashSet<u64> = others.flat_map(|process| process.sockets()).collect();
    sockets.into_iter().filter(|socket| inodes.contains(&socket.inode)).collect()
}

/// The process that holds a socket, if the program of the user cannot have opened it. `None` if this user sees none.
pub(super) fn foreign_holder(socket: &Waiting) -> Option<String> {
    let own = Process::read(getpid().as_raw_nonzero().get())?;
    let holders: Vec<_> = processes().filter(|process| process.sockets().contains(&socket.inode)).collect();
    foreign(&own, &holders).map(|process| format!("`{}` (process {})", process.name, process.pid))
}

/// The first of these holders of a socket, if all are older than this process and of other groups. A younger process
/// may work for the program, as the proxy of a container does.
fn foreign<'a>(own: &Process, holders: &'a [Process]) -> Option<&'a Process> {
    let is_foreign = |process: &Process| process.group != own.group && process.started < own.started;
    holders.first().filter(|_| holders.iter().all(is_foreign))
}

/// A process, as `/proc/PID/stat` has it: proc_pid_stat(5).
#[derive(Debug, PartialEq)]
struct Process {
    pid: i32,
    name: String,
    group: i32,
    /// Clock ticks since boot.
    started: u64,
}

impl Process {
    fn read(pid: i32) -> Option<Self> {
        Self::parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// The name of the program, in parentheses, may have blanks.
    fn parse(pid: i32, stat: &str) -> Option<Self> {
        let (name, rest) = stat.rsplit_once(')')?;
        let (_, name) = name.split_once('(')?;
        let mut columns = rest.split_whitespace();
        let group = columns.nth(2)?.parse().ok()?;
        Some(Self { pid, name: name.to_owned(), group, started: columns.nth(16)?.parse().ok()? })
    }

    /// The numbers of its sockets.
    fn sockets(&self) -> Vec<u64> {
        let files = fs::read_dir(format!("/proc/{}/fd", self.pid)).into_iter().flatten().flatten();
        let targets = files.filter_map(|file| fs::read_link(file.path()).ok());
        targets
            .filter_map(|target| target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok())
            .collect()
    }
}

fn processes() -> impl Iterator<Item = Process> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::net::{TcpListener, UdpSocket};

    use super::*;

    #[test]
    fn waiting_sockets_are_seen_with_their_address_and_without_a_connection() {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = tcp.local_addr().unwrap();
        let found = |carrier, at| all(carrier).into_iter().find(|socket| socket.at == at);
        let socket = found(Carrier::Tcp, at).unwrap();
        assert!(socket.is_reached_at(at.ip()) && !socket.is_reached_at("192.0.2.1".parse().unwrap()));
        tcp.set_nonblocking(true).unwrap();
        assert_eq!(tcp.accept().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        // The process of the test is not one that it started, and no foreign one.
        assert_eq!(of_group(vec![socket]), []);
        assert_eq!(foreign_holder(&socket), None);
        drop(tcp);
        assert_eq!(found(Carrier::Tcp, at), None);
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert!(found(Carrier::Udp, udp.local_addr().unwrap()).is_some());
    }

    #[test]
    fn lines_of_both_families_are_read() {
        let line =
            |local: &str| format!("  0: {local} 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 4711 1");
        let read = |local: &str| waiting(&line(local), "0A").unwrap();
        let any = read("00000000000000000000000000000000:1F90");
        assert_eq!((any.at, any.inode), ("[::]:8080".parse().unwrap(), 4711));
        assert!(any.is_reached_at("192.0.2.1".parse().unwrap()));
        assert_eq!(waiting(&line("00000000:1F90"), "07"), None);
        let words = |address: [u8; 16]| -> String {
            address.chunks(4).map(|word| format!("{:08X}", u32::from_ne_bytes(word.try_into().unwrap()))).collect()
        };
        let mapped = read(&format!("{}:0050", words(Ipv4Addr::new(192, 0, 2, 1).to_ipv6_mapped().octets())));
        assert!(mapped.is_reached_at("192.0.2.1".parse().unwrap()), "{mapped:?}");
    }

    #[test]
    fn a_process_is_read_from_its_line() {
        let line = "12 (a ) b) S 1 34 34 0 -1 4194304 1 0 0 0 5 6 7 8 20 0 1 0 910 11 12";
        let process = Process { pid: 12, name: "a ) b".to_owned(), group: 34, started: 910 };
        assert_eq!(Process::parse(12, line), Some(process));
        assert_eq!(Process::parse(12, "12 (a) S 1"), None);
    }

    #[test]
    fn a_socket_is_foreign_if_all_its_processes_are_older_and_of_other_groups() {
        let process = |(group, started)| Process { pid: group, name: String::new(), group, started };
        let is_foreign = |holders: &[(i32, u64)]| {
            let holders: Vec<_> = holders.iter().copied().map(process).collect();
            foreign(&process((5, 100)), &holders).is_some()
        };
        let (old, young) = ((7, 99), (8, 100));
        assert!(is_foreign(&[old]) && is_foreign(&[old, old]));
        assert!(!is_foreign(&[young]) && !is_foreign(&[old, young]) && !is_foreign(&[]) && !is_foreign(&[(5, 99)]));
    }
}
