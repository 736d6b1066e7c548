//! Where a program of the user should listen, and what is said if it does not.

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;

use wirelab_contract::via::unfit_for_socket;

use super::sockets::{self, Carrier, Waiting};
use crate::refusal::Refusal;

/// Where a program should listen.
pub(super) enum Place {
    Port {
        carrier: Carrier,
        at: SocketAddr,
        /// Whether the command line has the port.
        is_told: bool,
    },
    Socket(SocketFile),
}

impl Place {
    /// The path of the Unix socket; `None` for a port.
    pub fn socket(&self) -> Option<&Path> {
        match self {
            Self::Socket(SocketFile(path)) => Some(path),
            Self::Port { .. } => None,
        }
    }

    pub fn is_listening(&self) -> bool {
        match self {
            Self::Socket(SocketFile(path)) => sockets::is_listening_at(path),
            Self::Port { carrier, at, .. } => {
                listeners(*carrier, *at).iter().any(|socket| sockets::foreign_holder(socket).is_none())
            }
        }
    }

    /// Why a program that ended did not listen.
    pub fn after_its_end(&self, shown: &str, status: ExitStatus) -> String {
        let remedy = if status.success() { ". It must stay in the foreground until wirelab ends it" } else { "" };
        format!("`{shown}` ended with {status} before it listened {self}{remedy}")
    }

    /// Why a program that runs does not listen within the limit.
    pub fn missing(&self, shown: &str, limit: Duration) -> String {
        let found = match self {
            Self::Socket(_) => {
                let slow = if_slow(limit);
                format!("Its command line has this path in place of {{socket}}. It does not listen there. {slow}")
            }
            Self::Port { carrier, at, is_told } => {
                match listeners(*carrier, *at).iter().find_map(sockets::foreign_holder) {
                    Some(other) => format!("The port belongs to {other}, which ran before it. Remedy: end it"),
                    None => found(*carrier, *at, *is_told, limit, &sockets::of_group(sockets::all(*carrier))),
                }
            }
        };
        format!("`{shown}` does not listen {self} after {limit:?}. {found}")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Port { carrier, at, .. } => write!(f, "on {carrier} port {}", at.port()),
            Self::Socket(SocketFile(path)) => write!(f, "at the Unix socket {}", path.display()),
        }
    }
}

/// The sockets that clients of an address reach.
fn listeners(carrier: Carrier, at: SocketAddr) -> Vec<Waiting> {
    let mut sockets = sockets::all(carrier);
    sockets.retain(|socket| socket.at.port() == at.port() && socket.is_reached_at(at.ip()));
    sockets
}

fn if_slow(limit: Duration) -> String {
    format!("If it starts slowly, set a longer `start_timeout` ({limit:?})")
}

/// What the command line says about the port, and where the program listens.
fn found(carrier: Carrier, at: SocketAddr, is_told: bool, limit: Duration, own: &[Waiting]) -> String {
    let told = match is_told {
        true => "Its command line and the environment variable PORT have this port",
        false => "Only the environment variable PORT has this port; write {port} where the command line takes it",
    };
    let places = own.iter().map(|socket| socket.at.to_string()).collect::<Vec<_>>().join(", ");
    let found = match own {
        [] => format!("listens at no other {carrier} port. {}", if_slow(limit)),
        _ if own.iter().all(|socket| socket.at.port() == at.port()) => {
            let address = at.ip();
            format!("listens at {places}, where clients of {address} do not reach it. Let it listen at {{address}}")
        }
        _ => format!("listens at {places} instead. Let it read the port"),
    };
    format!("{told}. It {found}")
}

/// The file of a Unix socket, which the program creates. It is removed before the start and at drop.
pub(super) struct SocketFile(PathBuf);

impl SocketFile {
    pub fn new(path: PathBuf) -> Result<Self, Refusal> {
        if let Some(why) = unfit_for_socket(&path) {
            return Err(Refusal::failed(format!("the Unix socket of the server is {why} by --out")));
        }
        let file = Self(path);
        file.remove();
        Ok(file)
    }

    fn remove(&self) {
        // Most often there is none, or the program has removed it.
        let _ = fs::remove_file(&self.0);
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn a_missing_port_is_explained_by_what_the_program_was_told_and_where_it_listens() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let limit = Duration::from_secs(15);
        for (is_told, own, words) in [
            (true, &[][..], ["have this port", "no other TCP port", "`start_timeout` (15s)"]),
            (false, &[], ["write {port}", "Only the environment", "`start_timeout` (15s)"]),
            (true, &["[::]:8080"], ["have this port", "listens at [::]:8080 instead", "read the port"]),
            (true, &["127.0.0.1:80"], ["at 127.0.0.1:80", "clients of 192.0.2.1 do not reach it", "{address}"]),
        ] {
            let own: Vec<_> = own.iter().map(|text| Waiting::of_test(at(text))).collect();
            let said = found(Carrier::Tcp, at("192.0.2.1:80"), is_told, limit, &own);
            assert!(words.iter().all(|word| said.contains(word)), "{said}");
        }
        let place = Place::Port { carrier: Carrier::Tcp, at: at("192.0.2.1:80"), is_told: true };
        let said = place.missing("x", limit);
        assert!(said.starts_with("`x` does not listen on TCP port 80 after 15s. "), "{said}");
    }

    #[test]
    fn a_listening_unix_socket_is_seen_without_a_connection_and_its_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.sock");
        let place = Place::Socket(SocketFile::new(path.clone()).unwrap());
        assert!(!place.is_listening());
        let said = place.missing("x", Duration::from_secs(1));
        assert!(said.contains("at the Unix socket") && said.contains("{socket}"), "{said}");
        let listener = UnixListener::bind(&path).unwrap();
        assert!(place.is_listening());
        listener.set_nonblocking(true).unwrap();
        assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        drop(place);
        assert!(!path.exists());
        assert!(SocketFile::new(folder.path().join("a".repeat(108))).is_err());
    }
}
