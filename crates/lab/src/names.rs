//! Host names for one process and its descendants: an `/etc/hosts` file (hosts(5)) in a private mount namespace. A
//! name may have several addresses. Other processes do not see the file, and the namespace ends with the processes.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};
use rustix::thread::{UnshareFlags, unshare_unsafe};
use wirelab_model::network::SERVER_NAME;

use crate::LabError;

/// Host names with their addresses.
#[derive(Debug)]
pub(crate) struct Names {
    /// Path of the file that replaces `/etc/hosts`.
    hosts: CString,
}

impl Names {
    /// Maps the server name to these addresses, in the file `path`. Processes that already use the file see the
    /// activate.
    pub(crate) fn write(path: &Path, servers: &[IpAddr]) -> Result<Self, LabError> {
        Self::of(path, servers.iter().map(|server| (*server, SERVER_NAME)))
    }

    /// Maps each name to its address, in the file `path`.
    pub(crate) fn of<'a>(path: &Path, hosts: impl Iterator<Item = (IpAddr, &'a str)>) -> Result<Self, LabError> {
        let wrong = |error: io::Error| {
            LabError::file(format!("cannot give the servers a name: {}", path.display())).because(error)
        };
        let path = std::path::absolute(path).map_err(wrong)?;
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(wrong)?;
        let lines: Vec<_> = hosts.map(|(address, name)| format!("{address} {name}\n")).collect();
        activate(&file, &lines).map_err(wrong)?;
        let hosts = CString::new(path.as_os_str().as_bytes()).map_err(|error| wrong(error.into()))?;
        Ok(Self { hosts })
    }

    /// Applies the names to the calling process. Makes three system calls and does not allocate.
    pub(crate) fn enter(&self) -> io::Result<()> {
        // SAFETY: only the mount namespace (and with it what the process shares of its working directory) changes; no
        // memory and no file descriptor is unshared.
        unsafe { unshare_unsafe(UnshareFlags::NEWNS) }?;
        // Keep the mount out of other namespaces.
        mount_change(c"/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE)?;
        Ok(mount_bind(&*self.hosts, c"/etc/hosts")?)
    }
}

/// First byte of an active line.
const ACTIVE: u8 = b' ';

/// First byte of an inactive line.
const INACTIVE: u8 = b'#';

/// Activates these lines and deactivates all others. A concurrent reader must always find a server: otherwise its
/// resolver queries an unreachable name server for five seconds. The file is bind-mounted, so it cannot be replaced.
/// New lines are therefore appended as inactive, and then only their first byte changes.
fn activate(file: &File, wanted: &[String]) -> io::Result<()> {
    let mut text = String::new();
    { file }.read_to_string(&mut text)?;
    let mut end = text.len() as u64;
    let mut append = |line: &str| {
        file.write_all_at(line.as_bytes(), end)?;
        end += line.len() as u64;
        io::Result::Ok(end - line.len() as u64)
    };
    if text.is_empty() {
        append("127.0.0.1 localhost\n")?;
    }
    let mut others = Vec::new();
    let mut places = vec![None; wanted.len()];
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.starts_with([ACTIVE.into(), INACTIVE.into()]) {
            match wanted.iter().position(|wanted| line[1..] == *wanted) {
                Some(number) => places[number] = Some(at),
                None => others.push(at),
            }
        }
        at += line.len() as u64;
    }
    for (line, place) in wanted.iter().zip(places) {
        let place = place.map_or_else(|| append(&format!("{}{line}", char::from(INACTIVE))), Ok)?;
        file.write_all_at(&[ACTIVE], place)?;
    }
    others.into_iter().try_for_each(|place| file.write_all_at(&[INACTIVE], place))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    fn server(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    /// Addresses with the servers' name, by the rules of hosts(5).
    fn named(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().map(|line| line.split('#').next().unwrap().split_whitespace().collect::<Vec<_>>());
        lines.filter(|fields| fields.get(1) == Some(&SERVER_NAME)).map(|fields| fields[0].to_owned()).collect()
    }

    #[test]
    fn a_name_resolves_to_the_last_written_servers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        for (servers, wanted) in [
            (vec![server(1), server(2)], vec!["10.0.0.1", "10.0.0.2"]),
            (vec![server(2), server(13)], vec!["10.0.0.2", "10.0.0.13"]),
            (vec![server(13), server(1)], vec!["10.0.0.1", "10.0.0.13"]),
            (vec![], vec![]),
            (vec!["fd00::1".parse().unwrap()], vec!["fd00::1"]),
        ] {
            Names::write(&path, &servers).unwrap();
            assert_eq!(named(&path), wanted);
        }
        assert!(fs::read_to_string(&path).unwrap().starts_with("127.0.0.1 localhost\n"));
    }

    #[test]
    fn each_host_of_a_page_has_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        Names::write(&path, &[server(1)]).unwrap();
        Names::of(&path, [(server(1), "a.test"), (server(2), "b.test")].into_iter()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let counting: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).map(str::trim).collect();
        assert_eq!(counting, ["127.0.0.1 localhost", "10.0.0.1 a.test", "10.0.0.2 b.test"]);
    }

    #[test]
    fn a_concurrent_reader_always_finds_the_remaining_servers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        Names::write(&path, &[server(1), server(2)]).unwrap();
        let ends = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut read = 0;
                while !ends.load(Ordering::Relaxed) {
                    let found = named(&path);
                    assert!(found.contains(&server(2).to_string()), "{found:?}");
                    assert!(
                        found.iter().all(|one| (1..=3).any(|number| *one == server(number).to_string())),
                        "{found:?}"
                    );
                    read += 1;
                }
                read
            });
            for _ in 0..20_000 {
                Names::write(&path, &[server(2), server(3)]).unwrap();
                Names::write(&path, &[server(1), server(2)]).unwrap();
            }
            ends.store(true, Ordering::Relaxed);
            assert!(reader.join().unwrap() > 0);
        });
    }
}
