//! TCP sockets with the options of a spec: honoured, or refused before anything is connected.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::AsRawFd;

use serde_json::json;
use socket2::{Domain, Protocol as SocketProtocol, Socket, Type};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::protocol::Protocol;
use wirelab_contract::spec::Transport;

use crate::refusal::{Failure, Refusal};

/// Length of the accept queue; the kernel lowers it to `net.core.somaxconn`.
const BACKLOG: i32 = 65_535;

/// Length of the queue of Fast Open connections.
const FAST_OPEN_QUEUE: libc::c_int = 4096;

/// Bits of `net.ipv4.tcp_fastopen`.
const FAST_OPEN_CLIENT: u32 = 1;
const FAST_OPEN_SERVER: u32 = 2;

/// The TCP options of a spec.
#[derive(Debug, Clone, Copy)]
pub struct TcpOptions {
    congestion: Option<wirelab_contract::spec::Congestion>,
    no_delay: bool,
    fast_open: bool,
}

impl TcpOptions {
    /// Checks the options of a client.
    ///
    /// # Errors
    ///
    /// [`Refusal`] of an option that TCP or this kernel does not have.
    pub fn client(protocol: Protocol, transport: &Transport, qlog: bool) -> Result<Self, Refusal> {
        Self::new(protocol, transport, qlog, FAST_OPEN_CLIENT)
    }

    /// Checks the options of a server.
    ///
    /// # Errors
    ///
    /// See [`Self::client`].
    pub fn server(protocol: Protocol, transport: &Transport, qlog: bool) -> Result<Self, Refusal> {
        Self::new(protocol, transport, qlog, FAST_OPEN_SERVER)
    }

    fn new(protocol: Protocol, transport: &Transport, qlog: bool, fast_open_bit: u32) -> Result<Self, Refusal> {
        check_settings(protocol, transport, qlog)?;
        let options = Self {
            congestion: transport.congestion,
            no_delay: transport.no_delay.unwrap_or(true),
            fast_open: transport.fast_open.unwrap_or(false),
        };
        if options.fast_open {
            check_fast_open(fast_open_bit)?;
        }
        // Tested on a temporary socket, so that a refusal comes before any connection.
        options.socket(Domain::IPV4).map_err(|error| match options.congestion {
            Some(congestion) => Refusal::unsupported(format!(
                "congestion control `{}`: {error}; the kernel offers {} (net.ipv4.tcp_available_congestion_control), and without privileges only {} (net.ipv4.tcp_allowed_congestion_control)",
                congestion.token(),
                sysctl("tcp_available_congestion_control"),
                sysctl("tcp_allowed_congestion_control"),
            )),
            None => Refusal::failed(format!("creating a TCP socket: {error}")),
        })?;
        Ok(options)
    }

    fn socket(self, domain: Domain) -> io::Result<Socket> {
        let socket = Socket::new(domain, Type::STREAM.nonblocking(), Some(SocketProtocol::TCP))?;
        socket.set_tcp_nodelay(self.no_delay)?;
        if let Some(congestion) = self.congestion {
            socket.set_tcp_congestion(congestion.token().as_bytes())?;
        }
        Ok(socket)
    }

    /// Creates a non-blocking socket that is ready to connect.
    ///
    /// # Errors
    ///
    /// Those of the kernel.
    pub fn connecting(self, server: SocketAddr) -> io::Result<Socket> {
        let socket = self.socket(Domain::for_address(server))?;
        if self.fast_open {
            set_option(&socket, libc::TCP_FASTOPEN_CONNECT, 1)?;
        }
        Ok(socket)
    }

    /// Creates a non-blocking listening socket. Accepted connections inherit its options.
    ///
    /// # Errors
    ///
    /// [`Refusal`] if the address cannot be bound.
    pub fn listening(self, address: SocketAddr) -> Result<TcpListener, Refusal> {
        let listen = || {
            let socket = self.socket(Domain::for_address(address))?;
            socket.set_reuse_address(true)?;
            if self.fast_open {
                set_option(&socket, libc::TCP_FASTOPEN, FAST_OPEN_QUEUE)?;
            }
            socket.bind(&address.into())?;
            socket.listen(BACKLOG)?;
            Ok(socket.into())
        };
        listen().map_err(|error: io::Error| {
            let remedy = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    "; another program uses this port; choose another, or port 0 for a free one"
                }
                io::ErrorKind::AddrNotAvailable => "; this host has no such address",
                io::ErrorKind::PermissionDenied => "; ports below 1024 need privileges",
                _ => "",
            };
            Failure::new(ErrorKind::Other, format!("binding TCP {address}: {error}{remedy}")).into()
        })
    }

    /// Whether Fast Open is on; a client then has no time of connection.
    #[must_use]
    pub const fn fast_open(self) -> bool {
        self.fast_open
    }

    /// The effective options, read back from a socket with these options.
    #[must_use]
    pub fn configured(self) -> Configured {
        let mut configured = Configured::new();
        if let Ok(socket) = self.socket(Domain::IPV4) {
            if let Ok(name) = socket.tcp_congestion() {
                let name: Vec<_> = name.into_iter().take_while(|byte| *byte != 0).collect();
                configured.insert("congestion".to_owned(), String::from_utf8_lossy(&name).into());
            }
            if let Ok(no_delay) = socket.tcp_nodelay() {
                configured.insert("no_delay".to_owned(), no_delay.into());
            }
        }
        configured.insert("fast_open".to_owned(), json!(self.fast_open));
        configured
    }
}

/// Refuses transport settings that no protocol over a stream has, and windows that the protocol does not have.
pub(crate) fn check_settings(protocol: Protocol, transport: &Transport, qlog: bool) -> Result<(), Refusal> {
    let udp_only = "concerns UDP";
    let streams_only = "concerns protocols with flow control of their own";
    let set = [
        ("udp_send_buffer", transport.udp_send_buffer.is_some(), udp_only),
        ("udp_receive_buffer", transport.udp_receive_buffer.is_some(), udp_only),
        ("max_udp_payload", transport.max_udp_payload.is_some(), udp_only),
        ("gso", transport.gso.is_some(), udp_only),
        ("gro", transport.gro.is_some(), udp_only),
        ("qlog_dir", qlog, "concerns QUIC"),
        ("stream_window", transport.stream_window.is_some() && !protocol.is_http2(), streams_only),
        ("connection_window", transport.connection_window.is_some() && !protocol.is_http2(), streams_only),
    ];
    match set.into_iter().find(|(_, set, _)| *set) {
        None => Ok(()),
        Some((field, _, why)) => {
            Err(Refusal::unsupported(format!("`{field}` is set; it {why}, and the protocol is `{protocol}`")))
        }
    }
}

fn set_option(socket: &Socket, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option takes a `c_int`; its address and its exact size are passed, and it lives through the call.
    let status =
        unsafe { libc::setsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, name, (&raw const value).cast(), length) };
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check_fast_open(bit: u32) -> Result<(), Refusal> {
    let value = sysctl("tcp_fastopen");
    let on = value.parse::<u32>().is_ok_and(|bits| bits & bit != 0);
    if on {
        return Ok(());
    }
    let role = if bit == FAST_OPEN_CLIENT { "clients" } else { "servers" };
    Err(Refusal::unsupported(format!(
        "`fast_open` is set, and the kernel does not allow it for {role}: net.ipv4.tcp_fastopen is {value} and lacks the bit {bit}; allow it with `sysctl -w net.ipv4.tcp_fastopen=3`"
    )))
}

fn sysctl(name: &str) -> String {
    match std::fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")) {
        Ok(value) => value.trim().to_owned(),
        Err(error) => format!("unknown ({error})"),
    }
}
