//! Connections to the Unix socket (unix(7)) of a server.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::spec::ClientSpec;
use wirelab_contract::via::Via;

use crate::refusal::{Failure, Refusal};
use crate::socket::check_settings;

/// Interval of the attempts to connect while the server's queue of connections is full. The kernel has no event for it.
pub const RETRY: Duration = Duration::from_millis(1);

/// The Unix socket of a server.
#[derive(Debug, Clone)]
pub struct UnixSocket {
    path: PathBuf,
    address: SockAddr,
}

impl UnixSocket {
    /// The Unix socket of a spec; `None` if connections do not go to one.
    ///
    /// # Errors
    ///
    /// [`Refusal`] of a path that is too long for the kernel, and of settings that only TCP has.
    pub fn of(spec: &ClientSpec) -> Result<Option<Self>, Refusal> {
        let Some(Via::UnixSocket(path)) = &spec.via else { return Ok(None) };
        let transport = &spec.transport;
        check_settings(spec.protocol, transport, spec.qlog_dir.is_some())?;
        let set = [
            ("congestion", transport.congestion.is_some()),
            ("no_delay", transport.no_delay.is_some()),
            ("fast_open", transport.fast_open.is_some()),
        ];
        if let Some((field, _)) = set.into_iter().find(|(_, set)| *set) {
            return Err(Refusal::unsupported(format!(
                "`{field}` is set; it concerns TCP, and a Unix socket has no TCP"
            )));
        }
        let address = SockAddr::unix(path).map_err(|error| {
            Refusal::failed(format!("the path {} cannot be that of a Unix socket: {error}", path.display()))
        })?;
        Ok(Some(Self { path: path.clone(), address }))
    }

    /// The path as the spec has it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Creates a non-blocking socket, which is not connected yet.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn socket(&self) -> io::Result<Socket> {
        Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)
    }

    /// Connects a socket. It is connected at the return.
    ///
    /// # Errors
    ///
    /// Those of the kernel; `WouldBlock` if the server's queue is full: try again after [`RETRY`].
    pub fn connect(&self, socket: &Socket) -> io::Result<()> {
        socket.connect(&self.address)
    }

    /// The failure to connect, with its remedy.
    #[must_use]
    pub fn failure(&self, error: &io::Error) -> Failure {
        let (kind, remedy) = match error.kind() {
            io::ErrorKind::NotFound => (ErrorKind::Refused, "; does the server run, and is this its path?"),
            io::ErrorKind::ConnectionRefused => (ErrorKind::Refused, "; does a server listen there?"),
            io::ErrorKind::PermissionDenied => (ErrorKind::Other, "; this user needs the permission to write to it"),
            _ if error.raw_os_error() == Some(libc::EPROTOTYPE) => (ErrorKind::Protocol, "; it is no stream socket"),
            _ => (ErrorKind::Other, ""),
        };
        Failure::new(kind, format!("connecting to the Unix socket {}: {error}{remedy}", self.path.display()))
    }

    /// The effective settings.
    #[must_use]
    pub fn configured(&self) -> Configured {
        Configured::from_iter([("unix_socket".to_owned(), self.path.display().to_string().into())])
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixDatagram;

    use wirelab_contract::spec::Transport;

    use super::*;
    use crate::testing::client_spec;

    fn spec(path: &Path) -> ClientSpec {
        ClientSpec { via: Some(Via::UnixSocket(path.to_owned())), ..client_spec("h1c") }
    }

    #[test]
    fn each_reason_for_no_connection_has_its_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str| {
            let path = folder.path().join(name);
            let unix = UnixSocket::of(&spec(&path)).unwrap().unwrap();
            let failure = unix.failure(&unix.connect(&unix.socket().unwrap()).unwrap_err());
            assert!(failure.message.contains(path.to_str().unwrap()), "{}", failure.message);
            (failure.kind, failure.message)
        };
        assert!(matches!(refused("nothing"), (ErrorKind::Refused, why) if why.contains("does the server run")));
        std::fs::write(folder.path().join("file"), "").unwrap();
        assert!(matches!(refused("file"), (ErrorKind::Refused, why) if why.contains("does a server listen")));
        let _datagrams = UnixDatagram::bind(folder.path().join("datagrams")).unwrap();
        assert!(matches!(refused("datagrams"), (ErrorKind::Protocol, why) if why.contains("no stream socket")));
    }

    #[test]
    fn a_full_queue_asks_for_another_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("full");
        let unix = UnixSocket::of(&spec(&path)).unwrap().unwrap();
        let listener = unix.socket().unwrap();
        listener.bind(&unix.address).unwrap();
        listener.listen(1).unwrap();
        let mut waiting = Vec::new();
        let error = loop {
            let socket = unix.socket().unwrap();
            match unix.connect(&socket) {
                Ok(()) => waiting.push(socket),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "{error} after {}", waiting.len());
    }

    #[test]
    fn long_paths_and_settings_of_tcp_are_refused() {
        let refusal = |spec: &ClientSpec| UnixSocket::of(spec).unwrap_err().to_string();
        assert!(refusal(&spec(Path::new(&"a".repeat(200)))).contains("cannot be that of a Unix socket"));
        let transport = Transport { no_delay: Some(true), ..Transport::default() };
        assert!(refusal(&ClientSpec { transport, ..spec(Path::new("a")) }).contains("`no_delay` is set"));
        assert!(UnixSocket::of(&client_spec("h1c")).unwrap().is_none());
    }
}
