//! UDP sockets with the settings of the spec: buffer sizes and offloads are set, read back, and refused if not in
//! force.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, RawFd};

use serde_json::json;
use socket2::{Domain, Protocol, Socket, Type};
use wirelab_contract::error_kind::ErrorKind;
use wirelab_contract::event::Configured;
use wirelab_contract::spec::Transport;

use crate::refusal::{Failure, Refusal};

/// Any port of any local address of `peer`'s family.
#[must_use]
pub const fn any_port(peer: IpAddr) -> SocketAddr {
    let any = match peer {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    SocketAddr::new(any, 0)
}

/// Connects a socket, so that it gets ICMP errors, and datagrams from `peer` only.
///
/// # Errors
///
/// [`ErrorKind::Unreachable`] without a route.
pub fn connect(socket: &std::net::UdpSocket, peer: SocketAddr) -> Result<(), Failure> {
    socket.connect(peer).map_err(|error| {
        let kind = match error.kind() {
            io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => ErrorKind::Unreachable,
            _ => ErrorKind::Other,
        };
        Failure::new(kind, format!("connecting a UDP socket to {peer}: {error}"))
    })
}

/// Opens a socket bound to `local` with the buffer sizes of `settings`.
///
/// # Errors
///
/// [`Refusal::Unsupported`] if the kernel does not grant the buffer sizes.
pub fn open(local: SocketAddr, settings: &Transport) -> Result<std::net::UdpSocket, Refusal> {
    bind(local, settings, false)
}

/// Like [`open`], for several sockets at one port; the kernel distributes peers over them (`SO_REUSEPORT`).
///
/// # Errors
///
/// See [`open`].
pub fn open_shared(local: SocketAddr, settings: &Transport) -> Result<std::net::UdpSocket, Refusal> {
    bind(local, settings, true)
}

fn bind(local: SocketAddr, settings: &Transport, shared: bool) -> Result<std::net::UdpSocket, Refusal> {
    let failed = |error: io::Error| Refusal::failed(format!("binding a UDP socket to {local}: {error}"));
    let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP)).map_err(failed)?;
    for buffer in [Buffer::Send, Buffer::Receive] {
        if let Some(wanted) = buffer.of(settings) {
            buffer.set(&socket, wanted)?;
        }
    }
    if settings.udp_receive_buffer.is_none() {
        as_large_as_tcps(&socket).map_err(failed)?;
    }
    socket.set_nonblocking(true).map_err(failed)?;
    if shared {
        socket.set_reuse_port(true).map_err(failed)?;
    }
    socket.bind(&local.into()).map_err(failed)?;
    Ok(socket.into())
}

/// Gives a socket the receive buffer that TCP's autotuning may reach. The kernel's default of some 200 KiB is full
/// after a few milliseconds at a gigabit per second, and drops what follows, where TCP's buffer grows. The kernel
/// grants at most `net.core.rmem_max`; a buffer takes no memory until datagrams wait in it.
fn as_large_as_tcps(socket: &Socket) -> io::Result<()> {
    let of_tcp = limit("net.ipv4.tcp_rmem").split_whitespace().next_back().and_then(|bytes| bytes.parse().ok());
    match of_tcp {
        Some(bytes) if bytes > socket.recv_buffer_size()? / 2 => socket.set_recv_buffer_size(bytes),
        _ => Ok(()),
    }
}

/// Adds the effective buffer sizes to `configured`, without the kernel's doubling for bookkeeping.
pub fn report(socket: &impl AsFd, configured: &mut Configured) {
    let socket = socket2::SockRef::from(socket);
    for buffer in [Buffer::Send, Buffer::Receive] {
        if let Ok(bytes) = buffer.read(&socket) {
            configured.insert(buffer.field().to_owned(), json!(bytes));
        }
    }
}

/// Whether the kernel merges received datagrams on this socket (`UDP_GRO`, Linux 5.0).
#[must_use]
pub fn joins_on_receive(socket: &impl AsRawFd) -> bool {
    matches!(get_option(socket.as_raw_fd(), libc::UDP_GRO), Ok(value) if value != 0)
}

/// Enables or disables the merging of received datagrams on this socket.
///
/// # Errors
///
/// If the kernel does not know the option.
pub fn set_join_on_receive(socket: &std::net::UdpSocket, on: bool) -> io::Result<()> {
    set_option(socket.as_raw_fd(), libc::UDP_GRO, on.into())
}

/// The two buffers of a socket.
#[derive(Debug, Clone, Copy)]
enum Buffer {
    Send,
    Receive,
}

impl Buffer {
    const fn field(self) -> &'static str {
        match self {
            Self::Send => "udp_send_buffer",
            Self::Receive => "udp_receive_buffer",
        }
    }

    const fn of(self, settings: &Transport) -> Option<u64> {
        match self {
            Self::Send => settings.udp_send_buffer,
            Self::Receive => settings.udp_receive_buffer,
        }
    }

    /// The kernel's limit for processes without `CAP_NET_ADMIN`.
    const fn sysctl(self) -> &'static str {
        match self {
            Self::Send => "net.core.wmem_max",
            Self::Receive => "net.core.rmem_max",
        }
    }

    /// The effective size. Linux stores and reports twice the set value, for its own bookkeeping (socket(7)).
    fn read(self, socket: &Socket) -> io::Result<u64> {
        let doubled = match self {
            Self::Send => socket.send_buffer_size()?,
            Self::Receive => socket.recv_buffer_size()?,
        };
        Ok(doubled as u64 / 2)
    }

    fn set(self, socket: &Socket, wanted: u64) -> Result<(), Refusal> {
        let field = self.field();
        let refuse = |why: String| Refusal::Unsupported(format!("{field} = {wanted} bytes: {why}"));
        let size = i32::try_from(wanted).map_err(|_| refuse("the kernel takes at most 2^31 - 1".to_owned()))?;
        let attempt = || -> io::Result<u64> {
            match self {
                Self::Send => socket.set_send_buffer_size(size as usize)?,
                Self::Receive => socket.set_recv_buffer_size(size as usize)?,
            }
            if self.read(socket)? < wanted {
                // Above the limit only with CAP_NET_ADMIN; otherwise the first setting stays.
                let forced = match self {
                    Self::Send => libc::SO_SNDBUFFORCE,
                    Self::Receive => libc::SO_RCVBUFFORCE,
                };
                let _ = set(socket.as_raw_fd(), libc::SOL_SOCKET, forced, size);
            }
            self.read(socket)
        };
        let real = attempt().map_err(|error| refuse(error.to_string()))?;
        if real == wanted {
            return Ok(());
        }
        let sysctl = self.sysctl();
        Err(refuse(if real < wanted {
            format!(
                "the kernel granted {real}; its limit {sysctl} is {}. Raise it with `sysctl -w {sysctl}={wanted}`, or run with CAP_NET_ADMIN",
                limit(sysctl)
            )
        } else {
            format!("the kernel's smallest buffer is {real} bytes")
        }))
    }
}

/// The value of a sysctl, or the reason why it is unreadable.
fn limit(sysctl: &str) -> String {
    match std::fs::read_to_string(format!("/proc/sys/{}", sysctl.replace('.', "/"))) {
        Ok(text) => text.trim().to_owned(),
        Err(error) => format!("unknown ({error})"),
    }
}

fn set_option(socket: RawFd, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    set(socket, libc::SOL_UDP, name, value)
}

fn set(socket: RawFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    // SAFETY: `value` lives across the call, and the length given is its own; setsockopt only reads it.
    let status = unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), size_of_val(&value) as _) };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn get_option(socket: RawFd, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = size_of_val(&value) as libc::socklen_t;
    // SAFETY: both pointers are to live variables; getsockopt writes at most `length` bytes, the size of `value`.
    let status = unsafe { libc::getsockopt(socket, libc::SOL_UDP, name, (&raw mut value).cast(), &raw mut length) };
    if status == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 0);

    #[test]
    fn a_requested_buffer_size_is_effective_and_reported() {
        let settings =
            Transport { udp_receive_buffer: Some(100_000), udp_send_buffer: Some(65_536), ..Transport::default() };
        let socket = open(LOCAL, &settings).unwrap();
        let mut configured = Configured::new();
        report(&socket, &mut configured);
        assert_eq!(configured["udp_receive_buffer"], 100_000);
        assert_eq!(configured["udp_send_buffer"], 65_536);
    }

    #[test]
    fn a_receive_buffer_that_no_setting_names_is_as_large_as_tcps_may_be_or_the_limit() {
        let number = |sysctl: &str| limit(sysctl).split_whitespace().next_back()?.parse::<u64>().ok();
        let socket = open(LOCAL, &Transport::default()).unwrap();
        let mut configured = Configured::new();
        report(&socket, &mut configured);
        let bounds = [number("net.ipv4.tcp_rmem"), number("net.core.rmem_max")];
        if let [Some(of_tcp), Some(most)] = bounds {
            assert_eq!(configured["udp_receive_buffer"], of_tcp.min(most));
        } else {
            // A network namespace of its own may hide the limit; the kernel's default is the least.
            assert!(configured["udp_receive_buffer"].as_u64() >= number("net.core.rmem_default"));
        }
    }

    #[test]
    fn a_buffer_size_that_the_kernel_does_not_grant_is_unsupported() {
        for wanted in [1, 1 << 40] {
            let settings = Transport { udp_receive_buffer: Some(wanted), ..Transport::default() };
            let error = open(LOCAL, &settings).unwrap_err();
            assert!(matches!(&error, Refusal::Unsupported(message) if message.contains("udp_receive_buffer")));
        }
    }

    #[test]
    fn merging_on_receive_is_switched_and_read_back() {
        let socket = open(LOCAL, &Transport::default()).unwrap();
        assert!(!joins_on_receive(&socket));
        if set_join_on_receive(&socket, true).is_ok() {
            assert!(joins_on_receive(&socket));
            set_join_on_receive(&socket, false).unwrap();
            assert!(!joins_on_receive(&socket));
        }
    }
}
