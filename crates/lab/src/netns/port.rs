//! Sends and receives whole frames at an interface: an AF_PACKET socket (packet(7)).

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::netns::interface;
use crate::netns::option::set;

/// Kernel buffer for frames while the emulator is busy, in bytes: a hundred milliseconds at 500 Mbit/s.
const BUFFER: libc::c_int = 16 << 20;

/// All protocols, in network byte order.
const ALL: u16 = (libc::ETH_P_ALL as u16).to_be();

/// A packet socket on one interface.
#[derive(Debug)]
pub(crate) struct Port {
    socket: OwnedFd,
}

impl Port {
    /// Opens the interface of that name in the namespace of this thread.
    pub(crate) fn open(name: &str) -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // Created without a protocol, so that no frame arrives before it is bound.
        // SAFETY: no pointers; the result is checked.
        let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just opened and is owned by nothing else.
        let port = Self { socket: unsafe { OwnedFd::from_raw_fd(fd) } };
        // Ignore the frames that this socket sends.
        set(&port, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, 1)?;
        set(&port, libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, 1)?;
        set(&port, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        // Above the limit for ordinary users, if permitted.
        set(&port, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER)
            .or_else(|_| set(&port, libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER))?;
        // SAFETY: `sockaddr_ll` is plain data, for which all zeroes is a value.
        let mut address: libc::sockaddr_ll = unsafe { zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = ALL;
        address.sll_ifindex = interface::index(name)?.cast_signed();
        // SAFETY: the address lives through the call, and its exact size is passed.
        let status = unsafe {
            libc::bind(port.socket.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as u32)
        };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(port) }
    }

    /// Receives a frame: its length in `buffer`, and its age since reception by the kernel, in nanoseconds. `None`:
    /// no frame waits.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, u64)>> {
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = [0_u64; 8];
        // SAFETY: `msghdr` is plain data, for which all zeroes is a value.
        let mut message: libc::msghdr = unsafe { zeroed() };
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = size_of_val(&control);
        // SAFETY: everything that the message points to lives through the call, with the lengths that it states.
        let count = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_TRUNC) };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        }
        let length = count.cast_unsigned();
        if length > buffer.len() {
            let message = format!("a frame of {length} bytes came where at most {} were expected", buffer.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Some((length, age(&message))))
    }

    /// Sends a frame. Returns false if the interface cannot take it now (its peer is down, or the kernel is out of
    /// memory).
    pub(crate) fn send(&self, frame: &[u8]) -> io::Result<bool> {
        // SAFETY: the frame lives through the call, and its exact length is passed.
        let count = unsafe { libc::send(self.socket.as_raw_fd(), frame.as_ptr().cast(), frame.len(), 0) };
        if count >= 0 {
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::ENOBUFS | libc::EAGAIN | libc::ENETDOWN | libc::EINTR) => Ok(false),
            _ => Err(error),
        }
    }

    /// Frames that the kernel dropped since the last call because the buffer was full.
    pub(crate) fn dropped(&self) -> io::Result<u64> {
        let mut statistics = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the value and its length live through the call, and the length is the value's.
        let status = unsafe {
            libc::getsockopt(
                self.socket.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if status < 0 { Err(io::Error::last_os_error()) } else { Ok(u64::from(statistics.tp_drops)) }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Nanoseconds since the kernel received the message, by its time stamp; 0 without a stamp.
///
/// The stamp uses the settable clock. A step of that clock could make the age negative or absurdly large, so ages
/// outside the range up to one second count as 0.
fn age(message: &libc::msghdr) -> u64 {
    // SAFETY: the kernel filled the control buffer that the message points to, which still lives, and wrote its length.
    let header = unsafe { libc::CMSG_FIRSTHDR(message) };
    if header.is_null() {
        return 0;
    }
    // SAFETY: the header is within the control buffer, whose alignment is that of the header.
    let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
    if (level, kind) != (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
        return 0;
    }
    // SAFETY: a message of this kind carries one `timespec`, perhaps unaligned.
    let stamp: libc::timespec = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
    let stamp = stamp.tv_sec as i128 * 1_000_000_000 + i128::from(stamp.tv_nsec);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_nanos().cast_signed());
    u64::try_from(now - stamp).ok().filter(|age| *age < 1_000_000_000).unwrap_or(0)
}
